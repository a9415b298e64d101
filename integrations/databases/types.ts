import type { LeftOut } from './dump/leftOut.ts';

/** A space's database as the server should have it. Atrium makes all names, of letters and digits. */
export interface WantedDatabase {
  name: string;
  /** `locked` refuses all connections and keeps everything. `gone` does not exist. */
  state: 'open' | 'locked' | 'gone';
  /** Its accounts can read and delete, but not write. */
  isFull: boolean;
  /** Definitions alone fill it (views, routines and triggers). Then its accounts cannot make triggers either. */
  isFullOfDefinitions?: boolean;
  /** True if its tables are to be rewritten, which frees the disk space of deleted rows. */
  compacts: boolean;
  accounts: WantedAccount[];
  /** Aborts long work, which is then left as it is. */
  signal?: AbortSignal;
  /** The first content, until it is recorded that the server has it. */
  fill?: Fill | undefined;
}

/** Restores a dump, as the account of this name. */
export interface Fill {
  user: string;
  /**
   * Called when the remains of the earlier attempt are gone. Returns a new name for the database. So an earlier worker
   * that was taken for lost, and continues, finds no database under its name.
   */
  begin(): Promise<string>;
  /** Called with the function that consumes the dump's bytes. */
  read(take: (bytes: AsyncIterable<Buffer>) => Promise<void>): Promise<void>;
  signal: AbortSignal;
  /** Collects what the server refuses. */
  leftOut?: LeftOut;
}

export interface WantedAccount {
  user: string;
  password: string;
  /** Stays valid beside `password`. */
  previous: string | undefined;
  /** True if the server may have other passwords for it. */
  setsPasswords: boolean;
  /** It is locked although the database is open. Its definitions keep working. */
  isRevoked: boolean;
  /** True if its connections are ended once. It may connect again. */
  isCut: boolean;
  /** True for an account of Atrium. */
  onlyReads: boolean;
}

/** The limits of one account. */
export interface AccountLimits {
  maxConnections: number;
  /** The time limit of a statement. */
  queryMs: number;
  /** The time limit of a statement that reads for a backup. The default is hours. */
  readingMs?: number;
}

export interface DatabaseSize {
  bytes: number;
  /** Tables or partitions, each of which is a file, plus views, functions, procedures and triggers. */
  tables: number;
}

/** The databases and accounts of an installation on the server. */
export interface Found {
  databases: string[];
  users: string[];
  /** The `users` that are locked. */
  locked: string[];
}
