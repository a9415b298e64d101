import { bytesOf, bytesUpTo, lookUntil, orAfter, untilAborted } from '../../base/async.ts';

test('work is waited for until its signal is aborted', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const stop = new AbortController();
  const waits = untilAborted(promise, stop.signal);
  stop.abort(new Error('stopped'));
  await expect(waits).rejects.toThrow('stopped');
  await expect(untilAborted(promise, stop.signal)).rejects.toThrow('stopped');
  const others = [untilAborted(promise, undefined), untilAborted(promise, new AbortController().signal)];
  resolve('done');
  expect(await Promise.all(others)).toEqual(['done', 'done']);
  await expect(untilAborted(Promise.reject(new Error('failed')), new AbortController().signal)).rejects.toThrow(
    'failed',
  );
});

test('what is looked at is returned once it is done, or as it was seen last', async () => {
  let looks = 0;
  const look = () => ++looks;
  expect(await lookUntil(look, (seen) => seen === 4, { firstMs: 1, mostMs: 2 })).toBe(4);
  expect(await lookUntil(look, () => false, { firstMs: 1, forMs: 0 })).toBeGreaterThan(4);
  const stop = new AbortController();
  const stopped = lookUntil(look, () => false, { firstMs: 60_000, signal: stop.signal });
  stop.abort();
  await expect(stopped).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }));
  await expect(lookUntil(() => Promise.reject(new Error('failed')), Boolean, { firstMs: 1 })).rejects.toThrow('failed');
});

test('work is waited for until its time is up', async () => {
  expect(await orAfter(Promise.resolve('done'), 60_000, 'late')).toBe('done');
  expect(await orAfter(new Promise(() => undefined), 1, 'late')).toBe('late');
  await expect(orAfter(Promise.reject(new Error('failed')), 60_000, 'late')).rejects.toThrow('failed');
});

test('a stream is read up to its limit', async () => {
  async function* stream() {
    yield Buffer.from('ab');
    yield Buffer.from('cd');
  }
  const tooMany = () => new Error('too many');
  expect(String(await bytesOf(stream(), 4, tooMany))).toBe('abcd');
  await expect(bytesOf(stream(), 3, tooMany)).rejects.toThrow('too many');
  expect(String(await bytesUpTo(stream(), 1))).toBe('ab');
});
