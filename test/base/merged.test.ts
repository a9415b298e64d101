import { Merged } from '../../base/merged.ts';
import { waitFor } from '../support/waitFor.ts';

/** Work that ends when the test says so. */
function buildWork() {
  const begun: PromiseWithResolvers<number>[] = [];
  const work = () => {
    const run = Promise.withResolvers<number>();
    begun.push(run);
    return run.promise;
  };
  return { begun, work };
}

test('Calls during a run share the one run after it', async () => {
  const { begun, work } = buildWork();
  const merged = new Merged<number>();
  const first = merged.run('a', work);
  const later = [merged.run('a', work), merged.run('a', work), merged.run('a', work)];
  const other = merged.run('b', work);
  expect(begun).toHaveLength(2);
  begun[0]?.resolve(1);
  begun[1]?.resolve(2);
  expect([await first, await other]).toEqual([1, 2]);
  await waitFor('the next run', () => begun.length === 3);
  begun[2]?.resolve(3);
  expect(await Promise.all(later)).toEqual([3, 3, 3]);
  expect(begun).toHaveLength(3);
});

test('A failure reaches only the callers of that run', async () => {
  const { begun, work } = buildWork();
  const merged = new Merged<number>();
  const first = merged.run('a', work);
  const next = merged.run('a', work);
  begun[0]?.reject(new Error('not now'));
  await expect(first).rejects.toThrow('not now');
  await waitFor('the next run', () => begun.length === 2);
  begun[1]?.resolve(2);
  expect(await next).toBe(2);
});

test('There is a rest between two runs', async () => {
  const { begun, work } = buildWork();
  const merged = new Merged<number>({ restMs: 60_000 });
  const first = merged.run('a', work);
  void merged.run('a', work);
  begun[0]?.resolve(1);
  // The first caller does not wait for the rest.
  expect(await first).toBe(1);
  await new Promise(setImmediate);
  expect(begun).toHaveLength(1);
});
