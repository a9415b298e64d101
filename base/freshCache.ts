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
      entries.delete(key);
      entries.set(key, entry);
      if (entries.size > maxEntries) {
        const oldest = entries.keys().next();
        if (!oldest.done) entries.delete(oldest.value);
      }
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
