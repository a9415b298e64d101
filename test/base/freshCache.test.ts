import { createFreshCache } from '../../base/freshCache.ts';

afterEach(() => jest.useRealTimers());

/** A `load` that returns the number of its calls. */
function counted(delayMs = 0) {
  const asked: string[] = [];
  const load = async (key: string) => {
    const answer = asked.push(key);
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    return answer;
  };
  return { load, asked };
}

test('simultaneous callers share one load, and its value expires after maxAgeMs', async () => {
  jest.useFakeTimers();
  const cache = createFreshCache(counted().load, { maxAgeMs: 1_000 });
  expect(await Promise.all([cache.get('a'), cache.get('a')])).toEqual([1, 1]);
  jest.advanceTimersByTime(999);
  expect(await cache.get('a')).toBe(1);
  jest.advanceTimersByTime(1);
  expect(await cache.get('a')).toBe(2);
});

test('the age of a value counts from the start of its load', async () => {
  jest.useFakeTimers();
  const cache = createFreshCache(counted(900).load, { maxAgeMs: 1_000 });
  const first = cache.get('a');
  jest.advanceTimersByTime(900);
  expect(await first).toBe(1);
  jest.advanceTimersByTime(100);
  const second = cache.get('a');
  jest.advanceTimersByTime(900);
  expect(await second).toBe(2);
});

test('a forgotten key is loaded again', async () => {
  const cache = createFreshCache(counted().load, { maxAgeMs: 60_000 });
  await cache.get('a');
  cache.forget('a');
  expect(await cache.get('a')).toBe(2);
});

test('a failed load is not cached', async () => {
  let fails = true;
  const load = async () => {
    if (fails) throw new Error('down');
    return 'up';
  };
  const cache = createFreshCache(load, { maxAgeMs: 60_000 });
  await expect(cache.get('a')).rejects.toThrow('down');
  fails = false;
  await expect(cache.get('a')).resolves.toBe('up');
});

test('the cache drops an entry above maxEntries', async () => {
  const { load, asked } = counted();
  const cache = createFreshCache(load, { maxAgeMs: 60_000, maxEntries: 2 });
  for (const key of ['a', 'b', 'c', 'b', 'c']) await cache.get(key);
  expect(asked).toEqual(['a', 'b', 'c']);
  await cache.get('a');
  expect(asked).toHaveLength(4);
});
