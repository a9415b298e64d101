import { Readable } from 'node:stream';
import { keepBounded } from '../../../base/freshCache.ts';
import type { DriveWrite, SmallFile } from '../../../integrations/computers/drives/backend.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { appendAudit } from '../../../models/audit/audit.ts';
import { transaction } from '../../../models/database/database.ts';
import { checkName } from '../../../models/drive/names.ts';
import { UploadSession, type WrittenFile } from '../../../models/drive/uploadSession.ts';
import type { Written } from '../../../models/drive/writeFile.ts';
import { type Outcome, outcomeOf, writeTogether } from '../../../models/drive/writeTogether.ts';
import type { CommonDeps } from '../../deps.ts';
import type { WriteAuthority } from './authorities.ts';
import { timeOf } from './entries.ts';

/** A file that is open for long gets a version that is kept this often. */
const versionEveryMs = 60_000;
const mostSessions = 10_000;
const maxNameLetters = 60;

interface LongWriter {
  session: string;
  version: number;
  /** When the first of the versions that replace each other was written. */
  sinceMs: number;
}

type Deps = Pick<CommonDeps, 'config' | 'database'> & { storage: ObjectStore };

/** Writes what programs have written into the drive. */
export class FileWriter {
  readonly #deps: Deps;
  /** By file. Only this process knows them: after its end, one version more is kept. */
  readonly #writers = new Map<string, LongWriter>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async write(authority: WriteAuthority, write: DriveWrite, bytes: Readable): Promise<Written> {
    await using upload = this.#session(authority);
    const file = await this.#receive(upload, authority, write, bytes);
    // `await` is needed: what is not placed when this function returns is removed.
    return await this.#written(authority, write, await upload.write(file));
  }

  /** Like `write`, for several small files. */
  async writeSmall(authority: WriteAuthority, files: readonly SmallFile[]): Promise<Outcome[]> {
    await using upload = this.#session(authority);
    const received = await Promise.all(
      files.map(({ write, bytes }) => outcomeOf(this.#receive(upload, authority, write, [bytes]))),
    );
    const arrived = received.filter((file): file is WrittenFile => !(file instanceof Error));
    const outcomes = await writeTogether(this.#deps.database, upload, arrived);
    const done: Outcome[] = [];
    for (const [n, { write }] of files.entries()) {
      const file = received[n];
      const outcome = file instanceof Error || file === undefined ? file : outcomes.get(file);
      const written = outcome ?? new Error('A file was neither placed nor refused.');
      done.push(written instanceof Error ? written : await outcomeOf(this.#written(authority, write, written)));
    }
    return done;
  }

  #session({ spaceId }: WriteAuthority): UploadSession {
    const { database, storage, config } = this.#deps;
    return new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
  }

  /** Stores the bytes. */
  async #receive(
    upload: UploadSession,
    { spaceId, userId, name: computerName }: WriteAuthority,
    write: DriveWrite,
    bytes: AsyncIterable<Buffer> | Iterable<Buffer>,
  ): Promise<WrittenFile> {
    const { parentId: folderId, name, known, sizeBytes } = write;
    checkName(name);
    const modifiedAt = timeOf(write.modifiedAtMs);
    const says = { modifiedAt, isExecutable: write.executable };
    const supersedes = this.#writerOf(write)?.version;
    const conflictSuffix = suffixOf(computerName, modifiedAt);
    const file = await upload.receiveWritten(Readable.from(bytes), name, sizeBytes);
    return {
      write: { spaceId, userId, folderId, name, known, conflictSuffix, supersedes },
      file: { ...file, says },
    };
  }

  async #written(authority: WriteAuthority, write: DriveWrite, written: Written): Promise<Written> {
    const { session } = write;
    if (written.isConflict && !written.isRepeated) await this.#tellConflict(authority, written);
    if (session !== undefined && !written.isConflict) {
      const { id, version } = written.item;
      const sinceMs = this.#writerOf(write)?.sinceMs ?? Date.now();
      keepBounded(this.#writers, mostSessions, id, { session, version, sinceMs });
    }
    return written;
  }

  /** The writer of the version that was changed, if it is the same and was not there for long. */
  #writerOf({ known, session }: DriveWrite): LongWriter | undefined {
    const last = known && this.#writers.get(known.itemId);
    const isSame = last !== undefined && last.session === session && last.version === known?.version;
    return isSame && Date.now() - last.sinceMs < versionEveryMs ? last : undefined;
  }

  async #tellConflict({ spaceId, userId }: WriteAuthority, { item }: Written): Promise<void> {
    const actor = { userId, credentialId: null, address: null };
    await transaction(this.#deps.database, (tx) => appendAudit(tx, spaceId, actor, 'drive.conflict', item.id));
  }
}

/**
 * Such as `from Build, 2026-01-31 12-00-00`. It has no dot, which would look like an ending. The
 * time is that of the content, so a repeated request has the same.
 */
function suffixOf(computerName: string, modifiedAt: Date): string {
  const letters = [...computerName].filter((letter) => letter >= ' ' && letter !== '/' && letter !== '\u007F');
  const at = modifiedAt.toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '-');
  return `from ${letters.slice(0, maxNameLetters).join('')}, ${at}`;
}
