import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database.ts';
import type { Placed } from './changes.ts';
import { type DriveObject, leaseMs, newObjectKey } from './driveObject.ts';
import { driveModels } from './models.ts';
import { type ArrivedFile, type FileTarget, placeFile } from './placeFile.ts';
import { removeObjects } from './removeObjects.ts';

/** What is known about a file once its bytes are stored. */
export interface StoredBytes {
  size: number;
  contentType: string;
  sha256: Buffer;
  text: string | undefined;
}

/** Where the bytes go. The real one is integrations/storage. */
export interface ByteStore {
  write(
    key: string,
    bytes: AsyncIterable<Buffer>,
    options: { fileName: string; maxBytes: number; reserve(bytes: number): Promise<void> },
  ): Promise<StoredBytes>;
  /** Returns the keys of what it refuses to remove. */
  remove(keys: readonly string[], options: { alsoParts: boolean }): Promise<string[]>;
}

export interface DriveLimits {
  quotaBytes: number;
  maxFileBytes: number;
  keptVersions: number;
}

/**
 * Files on their way into a drive. Their bytes are stored one after the other, and then all are placed in one
 * transaction: either all of them are there, or none. What is not placed when the session ends is removed; if this
 * process is killed, by the sweeper.
 */
export class UploadSession implements AsyncDisposable {
  private readonly deps: { database: Database; store: ByteStore; limits: DriveLimits };
  private readonly spaceId: string;
  /** The objects without an owner yet. */
  private readonly objectKeys = new Set<string>();
  /** Those of them that the store has confirmed. */
  private readonly arrived = new Set<string>();
  private readonly renewal: NodeJS.Timeout;

  constructor(deps: { database: Database; store: ByteStore; limits: DriveLimits }, spaceId: string) {
    this.deps = deps;
    this.spaceId = spaceId;
    this.renewal = setInterval(() => this.renewLeases(), leaseMs / 5);
  }

  async receive(bytes: AsyncIterable<Buffer>, fileName: string): Promise<ArrivedFile> {
    const { database, store, limits } = this.deps;
    const { spaceId, objectKeys } = this;
    const objectKey = newObjectKey();
    let object: DriveObject | undefined;
    const { text, ...stored } = await store.write(objectKey, bytes, {
      fileName,
      maxBytes: limits.maxFileBytes,
      async reserve(count) {
        if (object !== undefined) return object.reserve(database, count, limits.quotaBytes);
        objectKeys.add(objectKey);
        object = await driveModels(database).DriveObject.begin(database, {
          objectKey,
          spaceId,
          bytes: count,
          quotaBytes: limits.quotaBytes,
        });
      },
    });
    this.arrived.add(objectKey);
    return { content: { objectKey, ...stored }, text };
  }

  async place(
    files: readonly { target: FileTarget; file: ArrivedFile }[],
    also?: (tx: Transaction, placed: readonly Placed[]) => Promise<void>,
  ): Promise<Placed[]> {
    const { database, limits } = this.deps;
    const placed = await transaction(database, async (tx) => {
      const done: Placed[] = [];
      for (const { target, file } of files) done.push(await placeFile(target, file, { ...limits, tx }));
      await also?.(tx, done);
      return done;
    });
    for (const { file } of files) this.objectKeys.delete(file.content.objectKey);
    return placed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.renewal);
    try {
      const { DriveObject } = driveModels(this.deps.database);
      const left = await DriveObject.giveUp([...this.objectKeys]);
      await removeObjects(this.deps, left, this.arrived);
    } catch {
      // The store or the database is away. The sweeper finds the rows, at once or when their lease has run out.
    }
  }

  private renewLeases(): void {
    // A renewal that fails is made up for by the next one; a lease lasts for five.
    driveModels(this.deps.database)
      .DriveObject.renewLeases([...this.objectKeys])
      .catch(() => undefined);
  }
}
