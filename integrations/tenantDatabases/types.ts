/** A space's database as the server should have it. Names are made by us alone: letters and digits. */
export interface WantedDatabase {
  name: string;
  /** `locked` lets nobody in and keeps everything; `gone` is not there at all. */
  state: 'open' | 'locked' | 'gone';
  accounts: WantedAccount[];
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
}

/** What one account may take of the server. */
export interface AccountLimits {
  maxConnections: number;
  /** What a statement may take. */
  queryMs: number;
}

/** What the server has of an installation, by name. */
export interface Found {
  databases: string[];
  users: string[];
  /** Those of the users who get in no more. */
  locked: string[];
}
