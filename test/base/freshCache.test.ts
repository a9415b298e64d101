import { createFreshCache } from '../../base/freshCache.ts';

afterEach(() => jest.useRealTimers());

/** Answers with how often it was asked. */
function counted(delayMs = 0) {
  const asked: string[] = [];
  const load = async (key: string) => {
    const answer = asked.push(key);
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    return answer;
  };
  return { load, asked };
}

test('callers at the same time share one question, and its answer is kept for its time only', async () => {
  jest.useFakeTimers();
  const cache = createFreshCache(counted().load, { maxAgeMs: 1_000 });
  expect(await Promise.all([cache.get('a'), cache.get('a')])).toEqual([1, 1]);
  jest.advanceTimersByTime(999);
  expect(await cache.get('a')).toBe(1);
  jest.advanceTimersByTime(1);
  expect(await cache.get('a')).toBe(2);
});

test('age counts from the question: a slow answer is not kept a moment longer', async () => {
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

test('what is forgotten is asked again at once', async () => {
  const cache = createFreshCache(counted().load, { maxAgeMs: 60_000 });
  await cache.get('a');
  cache.forget('a');
  expect(await cache.get('a')).toBe(2);
});

test('a failure is not an answer', async () => {
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

test('it stays within its bound', async () => {
  const { load, asked } = counted();
  const cache = createFreshCache(load, { maxAgeMs: 60_000, maxEntries: 2 });
  for (const key of ['a', 'b', 'c', 'b', 'c']) await cache.get(key);
  expect(asked).toEqual(['a', 'b', 'c']);
  await cache.get('a');
  expect(asked).toHaveLength(4);
});
