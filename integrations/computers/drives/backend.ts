import type { Readable, Writable } from 'node:stream';

/** What programs on a computer may do in the drive of its space. */
export type DriveAccess = 'write' | 'read' | 'none';

/** An item of a drive as the daemon gets it. Times are in milliseconds since 1970. */
export interface DriveEntry {
  id: string;
  parentId: string;
  kind: 'folder' | 'file' | 'symlink' | 'app' | 'repository';
  name: string;
  size: number;
  version: number;
  /** In hex. Null for anything but a file. */
  sha256: string | null;
  executable: boolean;
  modifiedAtMs: number;
  /** Where a symlink leads, or the working tree of a repository. */
  target?: string;
  revision: number;
}

export interface DriveRoot {
  item: DriveEntry;
  /** The database in which the revisions count. A restored one has another. */
  epoch: string;
  revision: number;
  access: DriveAccess;
  /** Null if the drive has no quota. */
  freeBytes: number | null;
  maxFileBytes: number;
}

export interface DriveChildren {
  items: DriveEntry[];
  /** Where the list goes on. Null at its end. */
  next: string | null;
  /** The drive's, from before the items were read. */
  revision: number;
}

export interface DriveNews {
  epoch: string;
  revision: number;
  access: DriveAccess;
  freeBytes: number | null;
  /** Whether the daemon has to forget all that it has listed. */
  reset: boolean;
  items: (DriveEntry & { live: boolean })[];
}

/** What the daemon knows. Without an epoch it is of an older release. */
export interface ChangesSince {
  after: number;
  epoch?: string | undefined;
}

export interface DriveWrite {
  parentId: string;
  name: string;
  /** The file whose content was changed, and the version that was changed. Undefined for a new file. */
  known?: { itemId: string; version: number };
  modifiedAtMs: number;
  executable: boolean;
  /** A writer that has the file open for long. */
  session?: string;
  /** An upper bound. */
  sizeBytes: number;
}

/** A file that was written, as it is in the drive now. */
export interface DriveWritten {
  item: DriveEntry;
  conflict: boolean;
}

/** A small file whose bytes are here. */
export interface SmallFile {
  write: DriveWrite;
  bytes: Buffer;
}

/** Opens so many of the bytes. */
export interface DriveContent {
  size: number;
  open(range?: { start: number; end: number }): Promise<{ sendTo(reader: Writable): Promise<void> }>;
}

/**
 * What the daemon asks for the drives of computers. Every call may be repeated. It acts with the authority that the
 * computer has at that moment. Failures are DomainErrors.
 */
export interface DriveBackend {
  root(computerId: string): Promise<DriveRoot>;
  children(computerId: string, folderId: string, after: string | undefined): Promise<DriveChildren>;
  content(computerId: string, itemId: string, version: number | undefined): Promise<DriveContent>;
  write(computerId: string, write: DriveWrite, bytes: Readable): Promise<DriveWritten>;
  /** Like `write`, for different files. One that fails is an error in the result, and the others are written. */
  writeSmall(computerId: string, files: readonly SmallFile[]): Promise<(DriveWritten | Error)[]>;
  /** Makes a folder, or a symlink if it has a target. */
  make(
    computerId: string,
    made: { id: string; parentId: string; name: string; target?: string },
  ): Promise<{ item: DriveEntry }>;
  move(
    computerId: string,
    change: { itemId: string; parentId: string; name: string; replace: boolean },
  ): Promise<{ item: DriveEntry }>;
  /**
   * With `removedSinceMs`, what was removed from the folder since then is below it in the trash. Returns the revision of
   * the removal, or 0 if the item was gone before.
   */
  trash(
    computerId: string,
    change: { itemId: string; onlyIfEmpty: boolean; removedSinceMs?: number | undefined },
  ): Promise<{ revision: number }>;
  attributes(
    computerId: string,
    change: { itemId: string; modifiedAtMs?: number; executable?: boolean },
  ): Promise<{ item: DriveEntry }>;
  /** Waits for changes after a revision, at most so long. */
  changes(computerId: string, since: ChangesSince, waitMs: number, signal: AbortSignal): Promise<DriveNews>;
}
