import type { Readable } from 'node:stream';
import { keepBounded } from '../../../base/freshCache.ts';
import type { DriveWrite } from '../../../integrations/computers/drives/backend.ts';
import type { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { appendAudit } from '../../../models/audit/audit.ts';
import { transaction } from '../../../models/database/database.ts';
import { checkName } from '../../../models/drive/names.ts';
import { UploadSession } from '../../../models/drive/uploadSession.ts';
import type { Written } from '../../../models/drive/writeFile.ts';
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
    const { database, storage, config } = this.#deps;
    const { spaceId, userId } = authority;
    const { parentId: folderId, name, known, session, sizeBytes } = write;
    checkName(name);
    const modifiedAt = timeOf(write.modifiedAtMs);
    const says = { modifiedAt, isExecutable: write.executable };
    const writer = this.#writerOf(write);
    await using upload = new UploadSession({ database, store: storage, limits: config.drive }, spaceId);
    const file = await upload.receiveWritten(bytes, name, sizeBytes);
    const conflictSuffix = suffixOf(authority.name, modifiedAt);
    const supersedes = writer?.version;
    // `await` is needed: what is not placed when this function returns is removed.
    const written = await upload.write(
      { spaceId, userId, folderId, name, known, conflictSuffix, supersedes },
      { ...file, says },
    );
    if (written.isConflict && !written.isRepeated) await this.#tellConflict(authority, written);
    if (session !== undefined && !written.isConflict) {
      const { id, version } = written.item;
      const sinceMs = writer?.sinceMs ?? Date.now();
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
