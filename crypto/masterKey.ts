/**
 * What wraps the data keys. It is asynchronous and knows nothing but wrapping, so that a key in a file, in the
 * environment and in a key management service are the same to everything else.
 */
export interface MasterKey {
  /** Stored beside each wrapped key. Names the master key without telling it. */
  readonly id: string;
  /** Encrypts a data key. `context` is authenticated with it: unwrapping with another one fails. */
  wrap(dataKey: Buffer, context: string): Promise<Buffer>;
  /** Throws {@link import('./errors.ts').DecryptionError} when the key or the context is another. */
  unwrap(wrapped: Buffer, context: string): Promise<Buffer>;
}

/**
 * The master key that wraps from now on, and the earlier ones that still unwrap. Rotation adds a new `current`, wraps
 * the data keys again one by one, and then drops the old one: nothing that was sealed is touched.
 */
export interface MasterKeyRing {
  readonly current: MasterKey;
  byId(id: string): MasterKey | undefined;
}

/** A ring of the given keys. */
export function keyRing(current: MasterKey, earlier: readonly MasterKey[] = []): MasterKeyRing {
  const keys = new Map([current, ...earlier].map((key) => [key.id, key]));
  return { current, byId: (id) => keys.get(id) };
}
