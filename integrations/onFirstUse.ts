import { setImmediate } from 'node:timers/promises';

/** What has been promised to nobody yet. */
const expected = new Set<() => Promise<unknown>>();

/**
 * Loads a large package when it is first used, so that a start does not wait for what it may never need. Call it where
 * the use is configured: `loadAhead` loads what is expected by then.
 */
export function onFirstUse<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined;
  const once = () => {
    expected.delete(once);
    loading ??= load();
    return loading;
  };
  expected.add(once);
  return once;
}

/** Loads what first uses would wait for. Between packages it lets requests pass; it ends early when aborted. */
export async function loadAhead(signal: AbortSignal): Promise<void> {
  for (const load of [...expected]) {
    await setImmediate();
    if (signal.aborted) return;
    await load();
  }
}
