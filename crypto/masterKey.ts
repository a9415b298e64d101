/**
 * Wraps the data keys. It is asynchronous and does nothing else, so that keys in a file, in the environment and in a
 * key management service look the same to all other code.
 */
export interface MasterKey {
  /** Stored with each wrapped key. Identifies the master key without revealing it. */
  readonly id: string;
  /** Encrypts a data key. `context` is authenticated with it: unwrapping with another one fails. */
  wrap(dataKey: Buffer, context: string): Promise<Buffer>;
  /** Throws {@link import('./errors.ts').DecryptionError} when the key or the context differs. */
  unwrap(wrapped: Buffer, context: string): Promise<Buffer>;
}

/**
 * The master key that wraps new data keys, and the others that still unwrap. A rotation makes another one `current`,
 * wraps the data keys again one by one, and then drops the old one. Sealed data is not touched. Ask both methods each
 * time, since a rotation by another process changes the answer.
 */
export interface MasterKeyRing {
  current(): Promise<MasterKey>;
  byId(id: string): Promise<MasterKey | undefined>;
}

/** A ring of the given keys. */
export function keyRing(current: MasterKey, others: readonly MasterKey[] = []): MasterKeyRing {
  const keys = new Map([...others, current].map((key) => [key.id, key]));
  return { current: async () => current, byId: async (id) => keys.get(id) };
}
