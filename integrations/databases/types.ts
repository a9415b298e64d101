import type { LeftOut } from './dump/leftOut.ts';

/** A space's database as the server should have it. Names are made by us alone: letters and digits. */
export interface WantedDatabase {
  name: string;
  /** `locked` lets nobody in and keeps everything; `gone` is not there at all. */
  state: 'open' | 'locked' | 'gone';
  /** Its accounts read and delete, and write nothing. */
  isFull: boolean;
  /** With views, functions, procedures and triggers alone: then they make no triggers either. */
  isFullOfDefinitions?: boolean;
  /** Whether its tables are written anew, which gives back to the disk what was deleted in them. */
  compacts: boolean;
  accounts: WantedAccount[];
  /** Ends what takes long, which is then left as it is. */
  signal?: AbortSignal;
  /** What is in it from the beginning, until it is noted that the server has it so. */
  fill?: Fill | undefined;
}

/** Puts all of a dump into it, as the account of this name. */
export interface Fill {
  user: string;
  /**
   * Called when nothing is left of the attempt before. Returns the name that the database has from now on, which none
   * had before: whoever made that attempt, and goes on when it was taken for lost, has a database that is not there.
   */
  begin(): Promise<string>;
  /** Called with what takes the dump's bytes. */
  read(take: (bytes: AsyncIterable<Buffer>) => Promise<void>): Promise<void>;
  signal: AbortSignal;
  /** Told of what the server refuses of it. */
  leftOut?: LeftOut;
}

export interface WantedAccount {
  user: string;
  password: string;
  /** Holds beside it. */
  previous: string | undefined;
  /** Whether the server may have other passwords for it. */
  setsPasswords: boolean;
  /** It lets nobody in, though the database is open: what it has defined goes on. */
  isRevoked: boolean;
  /** Whether the connections that it has are ended once; it may come back. */
  isCut: boolean;
  /** It is Atrium's own. */
  onlyReads: boolean;
}

/** What one account may take of the server. */
export interface AccountLimits {
  maxConnections: number;
  /** What a statement may take. */
  queryMs: number;
  /** The same of one that reads what is backed up; hours without it. */
  readingMs?: number;
}

/** What a database takes of the disk. */
export interface DatabaseSize {
  bytes: number;
  /** Or partitions, each of which is a file; and views, functions, procedures and triggers. */
  tables: number;
}

/** What the server has of an installation, by name. */
export interface Found {
  databases: string[];
  users: string[];
  /** Those of the users who get in no more. */
  locked: string[];
}
