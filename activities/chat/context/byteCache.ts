/** A least-recently-used cache, limited by its total bytes. */
export class ByteCache<V> {
  readonly #maxBytes: number;
  readonly #kept = new Map<string, { value: V; bytes: number }>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string): V | undefined {
    const found = this.#kept.get(key);
    if (found === undefined) return undefined;
    // Moves it to the end: a map keeps insertion order.
    this.#kept.delete(key);
    this.#kept.set(key, found);
    return found.value;
  }

  set(key: string, value: V, bytes: number): void {
    if (bytes > this.#maxBytes) return;
    this.#bytes += bytes - (this.#kept.get(key)?.bytes ?? 0);
    this.#kept.delete(key);
    this.#kept.set(key, { value, bytes });
    for (const [oldest, { bytes: freed }] of this.#kept) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#kept.delete(oldest);
      this.#bytes -= freed;
    }
  }
}
