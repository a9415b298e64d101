import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { deleteInBatches } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { insert, select } from '../database/sql.ts';
import { leavesOf } from './leaves.ts';
import { parseTtl } from './ttl.ts';

export interface NewDynamicSecret {
  /** The form's own name, and the field that the value was typed into. */
  name: string;
  field: string;
  /** Any JSON value. */
  value: unknown;
  ttl: string;
}

const maxValueBytes = 65_536;
/** Limits per space for values that have not expired: searching output for them takes time and memory. */
const maxSecrets = 200;
const maxTotalBytes = 262_144;

/**
 * Values that people type into a form that an agent shows them. A tool's input names one as `{"$secret": "<id>"}`. The
 * value goes from here into that tool and nowhere else. Until it expires, it serves the turns of the user who stored
 * it, in its space.
 */
export function createDynamicSecrets(database: Database, envelope: Envelope) {
  async function open(row: { id: string; spaceId: string; sealed: Buffer }): Promise<unknown> {
    const text = await envelope.open(row.spaceId, dynamicSecretContext(row.id), row.sealed);
    const value = JSON.parse(text.toString('utf8')) as unknown;
    await keepOutOfLogs(leavesOf(value));
    return value;
  }

  return {
    /** Stores the value and returns its id. Throws 400 `INVALID_TTL`, 413 `SECRET_TOO_LARGE`, 422 for a full space. */
    async store(spaceId: string, secret: NewDynamicSecret, actor: Actor & { userId: string }): Promise<string> {
      const ttlMs = parseTtl(secret.ttl);
      const plaintext = Buffer.from(JSON.stringify(secret.value), 'utf8');
      if (plaintext.length > maxValueBytes) {
        throw new DomainError('tooLarge', 'SECRET_TOO_LARGE', 'A value can have at most 64 KiB.');
      }
      const id = newId('dynamicSecret');
      const sealed = await envelope.seal(spaceId, dynamicSecretContext(id), plaintext);
      const now = new Date();
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        await assertRoom(tx, spaceId, plaintext.length, now);
        await insert(tx, 'dynamic_secrets', {
          id,
          spaceId,
          userId: actor.userId,
          name: secret.name,
          field: secret.field,
          sealed,
          size: plaintext.length,
          createdAt: now,
          expiresAt: new Date(now.getTime() + ttlMs),
        });
        await appendAudit(tx, spaceId, actor, 'form-secret.stored', id);
      });
      // After the space has accepted it: a refused value must not push the secrets of other spaces out of this list.
      await keepOutOfLogs(leavesOf(secret.value));
      return id;
    },

    /**
     * The values of these ids, for a tool of this user's turn. Ids that are unknown, expired or another user's are
     * missing.
     */
    async use(spaceId: string, userId: string, ids: readonly string[]): Promise<Map<string, unknown>> {
      if (ids.length === 0) return new Map();
      const rows = await transaction(database, async (tx) => {
        const found = await select<{ id: string; spaceId: string; sealed: Buffer }>(
          tx,
          `SELECT id, space_id, sealed FROM dynamic_secrets
            WHERE id IN (?) AND space_id = ? AND user_id = ? AND expires_at > ?`,
          [ids, spaceId, userId, new Date()],
        );
        const actor = { userId, credentialId: null, address: null };
        for (const { id } of found) await appendAudit(tx, spaceId, actor, 'form-secret.used', id);
        return found;
      });
      return new Map(await Promise.all(rows.map(async (row) => [row.id, await open(row)] as const)));
    },

    /** Deletes expired values in small statements. Returns the number of deleted rows. */
    purgeExpired: (now: Date, onBatch?: () => void): Promise<number> =>
      deleteInBatches(database, 'DELETE FROM dynamic_secrets WHERE expires_at <= ? LIMIT ?', [now], onBatch),
  };
}

/** The context that a sealed value is bound to, beside its space. */
export function dynamicSecretContext(id: string): string {
  return `dynamic_secrets/${id}`;
}

async function assertRoom(tx: Transaction, spaceId: string, size: number, now: Date): Promise<void> {
  const [others] = await select<{ count: number; bytes: string | number }>(
    tx,
    'SELECT COUNT(*) AS count, COALESCE(SUM(size), 0) AS bytes FROM dynamic_secrets WHERE space_id = ? AND expires_at > ?',
    [spaceId, now],
  );
  if (others === undefined) return;
  if (others.count < maxSecrets && Number(others.bytes) + size <= maxTotalBytes) return;
  throw new DomainError(
    'unprocessable',
    'TOO_MANY_FORM_SECRETS',
    `A space can hold ${maxSecrets} form secrets of ${maxTotalBytes / 1_024} KiB in total. Wait until some expire, or choose a shorter ttl.`,
  );
}
