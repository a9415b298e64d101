import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { assertNotReserved, isReservedName } from './names.ts';

/** What every member of the space may know about a secret. */
export interface SecretInfo {
  name: string;
  createdAt: Date;
  updatedAt: Date;
  updatedBy: string;
}

export interface SecretValue {
  name: string;
  value: string;
}

const infoColumns = 'name, created_at, updated_at, updated_by';
const maxValueBytes = 65_536;
const maxSecrets = 500;
/** Limit per space. More would not fit into a program's environment anyway. */
const maxTotalBytes = 2 * 1_048_576;

/**
 * The named secrets of spaces. Sealed bytes are bound to the space and the name: a moved or renamed row does not open.
 */
export function createSecrets(database: Database, envelope: Envelope) {
  async function open(spaceId: string, rows: readonly { name: string; sealed: Buffer }[]): Promise<SecretValue[]> {
    return Promise.all(
      rows.map(async ({ name, sealed }) => {
        const value = await envelope.open(spaceId, secretContext(name), sealed);
        const text = value.toString('utf8');
        await keepOutOfLogs([text]);
        return { name, value: text };
      }),
    );
  }

  return {
    /**
     * Sets a secret and returns whether it is new. Throws 413 `SECRET_TOO_LARGE`, and 422 for a reserved name or a full
     * space.
     */
    async put(
      spaceId: string,
      name: string,
      value: string,
      actor: Actor & { userId: string },
    ): Promise<{ isNew: boolean; info: SecretInfo }> {
      assertNotReserved(name);
      const plaintext = bytesOf(value);
      await keepOutOfLogs([value]);
      const sealed = await envelope.seal(spaceId, secretContext(name), plaintext);
      return transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        await assertRoom(tx, spaceId, name, plaintext.length);
        const now = new Date();
        const { affectedRows } = await execute(
          tx,
          `INSERT INTO secrets (space_id, name, sealed, size, revision, created_at, updated_at, updated_by)
           VALUES (?, ?, ?, ?, 1, ?, ?, ?)
           ON DUPLICATE KEY UPDATE sealed = VALUES(sealed), size = VALUES(size), revision = revision + 1,
             updated_at = VALUES(updated_at), updated_by = VALUES(updated_by)`,
          [spaceId, name, sealed, plaintext.length, now, now, actor.userId],
        );
        await appendAudit(tx, spaceId, actor, 'secret.set', name);
        const [info] = await select<SecretInfo>(
          tx,
          `SELECT ${infoColumns} FROM secrets WHERE space_id = ? AND name = ?`,
          [spaceId, name],
        );
        if (info === undefined) throw new Error('The secret could not be set.');
        // MySQL counts an insert as one row and an update instead of it as two.
        return { isNew: affectedRows === 1, info };
      });
    },

    /** Throws 404. */
    async remove(spaceId: string, name: string, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        const { affectedRows } = await execute(tx, 'DELETE FROM secrets WHERE space_id = ? AND name = ?', [
          spaceId,
          name,
        ]);
        if (affectedRows === 0) throw notFound('secret');
        await appendAudit(tx, spaceId, actor, 'secret.deleted', name);
      });
    },

    /** Names and times, ordered by name. Never a value. */
    async list(spaceId: string, page: PageRequest): Promise<Page<SecretInfo>> {
      const sql = `SELECT ${infoColumns} FROM secrets WHERE space_id = ?`;
      return readPage(database, page, { sql, values: [spaceId], by: 'name', order: 'asc' });
    },

    /**
     * The secrets of the space in clear, ordered by name, except those whose names have become reserved since. The
     * audit log records the read before it happens.
     */
    async readAll(spaceId: string, actor: Actor): Promise<SecretValue[]> {
      const rows = await transaction(database, async (tx) => {
        await appendAudit(tx, spaceId, actor, 'secrets.read', null);
        return select<{ name: string; sealed: Buffer }>(
          tx,
          'SELECT name, sealed FROM secrets WHERE space_id = ? ORDER BY name',
          [spaceId],
        );
      });
      return open(
        spaceId,
        rows.filter(({ name }) => !isReservedName(name)),
      );
    },

    /**
     * Some secrets of the space in clear, for a program that gets them as variables. Throws 409 `SECRET_MISSING`. The
     * audit log records the read before it happens.
     */
    async readSome(spaceId: string, names: readonly string[], actor: Actor): Promise<Record<string, string>> {
      if (names.length === 0) return {};
      const rows = await transaction(database, async (tx) => {
        await appendAudit(tx, spaceId, actor, 'secrets.read', null);
        const sql = 'SELECT name, sealed FROM secrets WHERE space_id = ? AND name IN (?)';
        return select<{ name: string; sealed: Buffer }>(tx, sql, [spaceId, names]);
      });
      const usable = rows.filter(({ name }) => !isReservedName(name));
      const missing = names.find((wanted) => !usable.some(({ name }) => name === wanted));
      if (missing !== undefined) {
        throw new DomainError('conflict', 'SECRET_MISSING', `The space has no secret ${missing}.`);
      }
      const values = await open(spaceId, usable);
      return Object.fromEntries(values.map(({ name, value }) => [name, value]));
    },
  };
}

export type Secrets = ReturnType<typeof createSecrets>;

/** The context that a sealed value is bound to, beside its space. */
export function secretContext(name: string): string {
  return `secrets/${name}`;
}

async function assertRoom(tx: Transaction, spaceId: string, name: string, size: number): Promise<void> {
  const [others] = await select<{ count: number; bytes: string | number }>(
    tx,
    'SELECT COUNT(*) AS count, COALESCE(SUM(size), 0) AS bytes FROM secrets WHERE space_id = ? AND name <> ?',
    [spaceId, name],
  );
  if (others === undefined) return;
  if (others.count < maxSecrets && Number(others.bytes) + size <= maxTotalBytes) return;
  throw new DomainError(
    'unprocessable',
    'TOO_MANY_SECRETS',
    `A space has room for ${maxSecrets} secrets of ${maxTotalBytes / 1_048_576} MiB in all.`,
  );
}

function bytesOf(value: string): Buffer {
  const bytes = Buffer.from(value, 'utf8');
  if (bytes.length <= maxValueBytes) return bytes;
  throw new DomainError('tooLarge', 'SECRET_TOO_LARGE', 'A secret has at most 64 KiB.');
}
