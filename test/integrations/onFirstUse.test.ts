import { loadAhead, onFirstUse } from '../../integrations/onFirstUse.ts';

test('a module is loaded once, on its first use or by loadAhead', async () => {
  const loaded: string[] = [];
  const loaderOf = (name: string) =>
    onFirstUse(async () => {
      loaded.push(name);
      return name;
    });
  const [first, second] = [loaderOf('first'), loaderOf('second')];
  expect(loaded).toEqual([]);
  expect(await Promise.all([first(), first()])).toEqual(['first', 'first']);
  await loadAhead(AbortSignal.abort());
  expect(loaded).toEqual(['first']);
  await loadAhead(new AbortController().signal);
  await loadAhead(new AbortController().signal);
  expect(loaded).toEqual(['first', 'second']);
  expect(await second()).toBe('second');
  expect(loaded).toEqual(['first', 'second']);
});
