/**
 * Keeps backups as named byte strings of a few MiB at most. Once `write` settles, the bytes are there as a whole and
 * survive a power cut. Failures are {@link BackupError}s.
 */
export interface Place {
  /** A name for people. */
  title: string;
  /** Whether the folder exists. Always true for a bucket: a missing one fails at the first request. */
  exists(): Promise<boolean>;
  /** The names with this prefix. */
  list(prefix: string): AsyncIterable<string>;
  /**
   * Undefined if the name does not exist. Throws {@link DamageError} if it has more than `mostBytes`, without reading
   * it.
   */
  read(name: string, mostBytes: number): Promise<Buffer | undefined>;
  write(name: string, bytes: Buffer): Promise<void>;
  /** Ignores names that do not exist. */
  remove(names: readonly string[]): Promise<void>;
  close(): void;
}
