import { mergedHints } from '../../temporal/mergedHints.ts';

test('Hints during a running hint become one hint after it, and keys do not wait for each other', async () => {
  const sent: { id: string; done: () => void }[] = [];
  const hint = mergedHints(({ id }: { id: string }) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    sent.push({ id, done: resolve });
    return promise;
  });
  const ids = () => sent.map(({ id }) => id);
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  for (const id of ['a', 'a', 'a', 'b', 'a']) hint({ id });
  expect(ids()).toEqual(['a', 'b']);
  sent[0]?.done();
  await settle();
  expect(ids()).toEqual(['a', 'b', 'a']);
  for (const { done } of sent) done();
  await settle();
  expect(ids()).toEqual(['a', 'b', 'a']);
  hint({ id: 'a' });
  expect(ids()).toEqual(['a', 'b', 'a', 'a']);
});
