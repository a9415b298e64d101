import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { LeasedObjects } from './arrivingObject.ts';
import type { Placed } from './changes.ts';
import { type DriveObject, newObjectKey } from './driveObject.ts';
import { type KnownSpot, knownFoldersOf } from './knownFolders.ts';
import { driveModels } from './models.ts';
import { reserveOf } from './objectReserve.ts';
import { type ArrivedFile, type FileTarget, placeFile } from './placeFile.ts';
import { knownPlacerOf } from './placeKnown.ts';
import { isInDrive, targetIn, type Write, type Written, writeFile } from './writeFile.ts';

/** What is known about a file once its bytes are stored. */
export interface StoredBytes {
  size: number;
  contentType: string;
  sha256: Buffer;
  text: string | undefined;
  contentTypeOfOther?: string | undefined;
}

/** The object store. The implementation is in integrations/storage. */
export interface ByteStore {
  write(
    key: string,
    bytes: AsyncIterable<Buffer>,
    options: {
      fileName: string;
      otherName?: string | undefined;
      maxBytes: number;
      reserve(bytes: number): Promise<void>;
    },
  ): Promise<StoredBytes>;
  /** Returns the keys that the store refuses to remove. */
  remove(keys: readonly string[], options: { alsoParts: boolean }): Promise<string[]>;
}

export interface DriveLimits {
  quotaBytes: number;
  maxFileBytes: number;
  keptVersions: number;
}

export interface Arrived {
  target: FileTarget;
  file: ArrivedFile;
}

/** What a program has written. */
export interface WrittenFile {
  write: Write;
  file: ArrivedFile;
}

/** A write in the transaction that places the files, so that it exists exactly when they do. */
export type AlsoPlaced = (tx: Transaction, placed: readonly Placed[]) => Promise<void>;

/** Files up to this size may be stored before their bytes are counted. */
const reservableBytes = 256 * 1_024;

/**
 * Files on their way into a drive. Their bytes are stored one after the other, then all are placed in one transaction:
 * all of them, or none. Files that are not placed when the session ends are removed. If this process is killed, the
 * sweeper removes them.
 */
export class UploadSession implements AsyncDisposable {
  private readonly deps: { database: Database; store: ByteStore; limits: DriveLimits };
  private readonly spaceId: string;
  private readonly objects: LeasedObjects;

  constructor(deps: { database: Database; store: ByteStore; limits: DriveLimits }, spaceId: string) {
    this.deps = deps;
    this.spaceId = spaceId;
    this.objects = new LeasedObjects(deps);
  }

  /**
   * Where a file goes if its object may come from the reserve: it is small, and its folder recently received a file.
   * Otherwise undefined, and the bytes are counted before they are stored.
   */
  knownSpot(target: FileTarget, mostBytes: number): KnownSpot | undefined {
    return mostBytes > reservableBytes ? undefined : knownFoldersOf(this.deps.database).spotOf(target);
  }

  /** Stores a file for a known spot. Its bytes are counted when it is placed. */
  async receiveKnown(
    bytes: AsyncIterable<Buffer>,
    { name, nameInside }: Pick<KnownSpot, 'name' | 'nameInside'>,
  ): Promise<ArrivedFile> {
    const { database, store, limits } = this.deps;
    const objectKey = await reserveOf(database).take();
    this.objects.keys.add(objectKey);
    const { text, contentTypeOfOther, ...stored } = await store.write(objectKey, bytes, {
      fileName: name,
      otherName: nameInside,
      maxBytes: limits.maxFileBytes,
      reserve: async () => undefined,
    });
    this.objects.arrived.add(objectKey);
    return { content: { objectKey, ...stored }, text, isReserved: true, contentTypeInside: contentTypeOfOther };
  }

  async receive(bytes: AsyncIterable<Buffer>, fileName: string): Promise<ArrivedFile> {
    const { database, store, limits } = this.deps;
    const { spaceId, objects } = this;
    const objectKey = newObjectKey();
    let object: DriveObject | undefined;
    const { size, contentType, sha256, text } = await store.write(objectKey, bytes, {
      fileName,
      maxBytes: limits.maxFileBytes,
      async reserve(count) {
        if (object !== undefined) return object.reserve(database, count, limits.quotaBytes);
        objects.keys.add(objectKey);
        object = await driveModels(database).DriveObject.begin(database, {
          objectKey,
          spaceId,
          bytes: count,
          quotaBytes: limits.quotaBytes,
        });
      },
    });
    this.objects.arrived.add(objectKey);
    return { content: { objectKey, size, contentType, sha256 }, text };
  }

  /** `also` may run more than once. The effects of the earlier run were rolled back. */
  async place(files: readonly Arrived[], also?: AlsoPlaced): Promise<Placed[]> {
    const placed = (await this.placeKnown(files, also)) ?? (await this.placeAll(files, also));
    for (const { file } of files) this.isKept(file);
    return placed;
  }

  /** Stores what a program has written. The bytes of a small file are counted when it is placed. */
  async receiveWritten(bytes: AsyncIterable<Buffer>, name: string, mostBytes: number): Promise<ArrivedFile> {
    if (mostBytes > reservableBytes) return this.receive(bytes, name);
    return this.receiveKnown(bytes, { name, nameInside: undefined });
  }

  /** Places what a program has written. */
  async write(written: WrittenFile): Promise<Written> {
    const known = await this.writeKnown(written);
    if (known !== undefined) return known;
    const [placed] = await this.writeAll([written]);
    if (placed === undefined) throw new Error('A file was neither placed nor refused.');
    return placed;
  }

  /** Places several files in one transaction: all of them, or none. */
  async writeAll(files: readonly WrittenFile[]): Promise<Written[]> {
    const arrived = files.map(({ file }) => file);
    const placed = await this.inOne(arrived, async (tx) => {
      const done: Written[] = [];
      for (const { write, file } of files) done.push(await writeFile(write, file, { ...this.deps.limits, tx }));
      return done;
    });
    for (const [n, { isRepeated }] of placed.entries()) if (!isRepeated) this.isKept(arrived[n]);
    return placed;
  }

  /** Places a new file in a folder that recently received one. Undefined if nothing was done. */
  async writeKnown({ write, file }: WrittenFile): Promise<Written | undefined> {
    const { database, limits } = this.deps;
    const folder = write.known === undefined ? knownFoldersOf(database).folderWith(write.folderId) : undefined;
    if (!file.isReserved || folder === undefined || !isInDrive(folder.place)) return undefined;
    if (folder.place.itself.spaceId !== write.spaceId) return undefined;
    const target = targetIn(folder.place, write);
    const { quotaBytes } = limits;
    const known = { folder, name: write.name, nameInside: undefined, target, file, also: undefined, quotaBytes };
    const placed = await knownPlacerOf(database).place(database, known);
    if (placed !== undefined) this.isKept(file);
    return placed && { ...placed, isConflict: false, isRepeated: false };
  }

  private isKept(file: ArrivedFile | undefined): void {
    if (file !== undefined) this.objects.keys.delete(file.content.objectKey);
  }

  private async placeKnown(
    [one, ...others]: readonly Arrived[],
    also: AlsoPlaced | undefined,
  ): Promise<Placed[] | undefined> {
    const { database, limits } = this.deps;
    if (!one?.file.isReserved || others.length > 0) return undefined;
    const spot = knownFoldersOf(database).spotOf(one.target);
    if (spot === undefined) return undefined;
    const placed = await knownPlacerOf(database).place(database, {
      ...spot,
      ...one,
      also,
      quotaBytes: limits.quotaBytes,
    });
    return placed && [placed];
  }

  private async placeAll(files: readonly Arrived[], also: AlsoPlaced | undefined): Promise<Placed[]> {
    const { limits } = this.deps;
    const arrived = files.map(({ file }) => file);
    return this.inOne(arrived, async (tx) => {
      const done: Placed[] = [];
      for (const { target, file } of files) done.push(await placeFile(target, file, { ...limits, tx }));
      await also?.(tx, done);
      return done;
    });
  }

  private async inOne<Done>(files: readonly ArrivedFile[], work: (tx: Transaction) => Promise<Done>): Promise<Done> {
    const { database } = this.deps;
    try {
      return await transaction(database, work);
    } catch (error) {
      const isGivenUp = error instanceof DomainError && error.code === 'UPLOAD_EXPIRED';
      if (isGivenUp && files.some((file) => file.isReserved)) reserveOf(database).forget();
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.objects[Symbol.asyncDispose]();
  }
}
