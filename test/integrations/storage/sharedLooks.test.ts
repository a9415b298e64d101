import type { Damage } from '../../../integrations/storage/checkedContent.ts';
import { SharedLooks } from '../../../integrations/storage/sharedLooks.ts';

/** A look that ends when the test says so, and counts how often it is taken. */
function pendingLook() {
  const { promise, resolve, reject } = Promise.withResolvers<Damage | null>();
  const signals: AbortSignal[] = [];
  const look = (signal: AbortSignal) => {
    signals.push(signal);
    return promise;
  };
  return { look, signals, resolve, reject };
}

test('all who ask at a time share a look, and later ones its answer', async () => {
  const looks = new SharedLooks();
  const { look, signals, resolve } = pendingLook();
  const asked = [looks.share('a', look), looks.share('a', look)];
  const other = looks.share('b', async () => null);
  resolve('damaged');
  expect(await Promise.all([...asked, other])).toEqual(['damaged', 'damaged', null]);
  expect(await looks.share('a', look)).toBe('damaged');
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
});

test('one that fails is told to all, and made again', async () => {
  const looks = new SharedLooks();
  const { look, reject } = pendingLook();
  const asked = [looks.share('a', look), looks.share('a', look)];
  reject(new Error('away'));
  for (const one of asked) await expect(one).rejects.toThrow('away');
  expect(await looks.share('a', async () => null)).toBeNull();
});

test('it ends when the last one leaves, and whoever comes then begins another', async () => {
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
