import type { Damage } from '../../../integrations/storage/checkedContent.ts';
import { SharedLooks } from '../../../integrations/storage/sharedLooks.ts';

/** A look that the test ends. `signals` has one signal for each call. */
function pendingLook() {
  const { promise, resolve, reject } = Promise.withResolvers<Damage | null>();
  const signals: AbortSignal[] = [];
  const look = (signal: AbortSignal) => {
    signals.push(signal);
    return promise;
  };
  return { look, signals, resolve, reject };
}

test('simultaneous callers share a look, and later callers get its answer', async () => {
  const looks = new SharedLooks();
  const { look, signals, resolve } = pendingLook();
  const asked = [looks.share('a', look), looks.share('a', look)];
  const other = looks.share('b', async () => null);
  resolve('damaged');
  expect(await Promise.all([...asked, other])).toEqual(['damaged', 'damaged', null]);
  expect(await looks.share('a', look)).toBe('damaged');
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
});

test('a failed look fails for all its callers, and the next caller starts another', async () => {
  const looks = new SharedLooks();
  const { look, reject } = pendingLook();
  const asked = [looks.share('a', look), looks.share('a', look)];
  reject(new Error('away'));
  for (const one of asked) await expect(one).rejects.toThrow('away');
  expect(await looks.share('a', async () => null)).toBeNull();
});

test('a look is aborted when its last caller leaves, and the next caller starts another', async () => {
  const looks = new SharedLooks();
  const { look, signals } = pendingLook();
  const [first, second] = [new AbortController(), new AbortController()];
  const asked = [looks.share('a', look, first.signal), looks.share('a', look, second.signal)];
  first.abort();
  await expect(asked[0]).rejects.toThrow('aborted');
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  second.abort();
  await expect(asked[1]).rejects.toThrow('aborted');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(await looks.share('a', async () => null)).toBeNull();
});
