/**
 * A cache for what must never be older than `maxAgeMs`, such as whether a session is still valid. Age counts from the
 * moment the question was *asked*, so an answer read just before a revocation is not kept a moment longer; callers at
 * the same time share one query.
 */
export interface FreshCache<V> {
  get(key: string): Promise<V>;
  /** Call it after the change is committed: this process then sees it at once, the others within `maxAgeMs`. */
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
      // A failure is not an answer: the next caller asks again.
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
