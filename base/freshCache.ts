/**
 * A cache for values that must never be older than `maxAgeMs`, such as whether a session is valid. Age counts from when
 * the load *starts*, so a value read just before a revocation is not kept a moment longer. Concurrent callers share one
 * load.
 */
export interface FreshCache<V> {
  get(key: string): Promise<V>;
  /** Call after committing a change: this process then sees it at once, other processes within `maxAgeMs`. */
  forget(key: string): void;
}

interface Entry<V> {
  askedAt: number;
  value: Promise<V>;
}

export function createFreshCache<V>(
  load: (key: string) => Promise<V>,
  options: { maxAgeMs: number; maxEntries?: number },
): FreshCache<V> {
  const { maxAgeMs, maxEntries = 10_000 } = options;
  const entries = new Map<string, Entry<V>>();
  return {
    get(key) {
      const now = performance.now();
      const known = entries.get(key);
      if (known !== undefined && now - known.askedAt < maxAgeMs) return known.value;
      const entry = { askedAt: now, value: load(key) };
      keepBounded(entries, maxEntries, key, entry);
      // A failure is not cached: the next caller loads again.
      entry.value.catch(() => {
        if (entries.get(key) === entry) entries.delete(key);
      });
      return entry.value;
    },
    forget(key) {
      entries.delete(key);
    },
  };
}

/** Sets the newest entry of a map that has at most `max` of them. The oldest is dropped for it. */
export function keepBounded<Key, Value>(map: Map<Key, Value>, max: number, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}
