/**
 * Where backups are kept: names with bytes, each a few MiB at most. What is written is there as a whole, and stays after
 * a power cut, once `write` has settled. Failures are {@link BackupError}s.
 */
export interface Place {
  /** For people. */
  title: string;
  /** Whether there is such a folder; a bucket that is none is told by whatever is asked of it. */
  exists(): Promise<boolean>;
  /** The names that begin so. */
  list(prefix: string): AsyncIterable<string>;
  /** Undefined where there is nothing of that name. Throws {@link DamageError} for what is larger, which is not read. */
  read(name: string, mostBytes: number): Promise<Buffer | undefined>;
  write(name: string, bytes: Buffer): Promise<void>;
  /** What is not there any more is fine. */
  remove(names: readonly string[]): Promise<void>;
  close(): void;
}
