import { randomBytes } from 'node:crypto';
import type { RowDataPacket } from 'mysql2';
import type { Envelope } from '../../crypto/envelope.ts';
import { keepOutOfLogs } from '../../telemetry/knownSecrets.ts';
import { appendAudit } from '../audit.ts';
import { type Database, transaction } from '../database.ts';
import { notFound } from '../errors.ts';
import { execute, select } from '../sql.ts';
import { lockOwn, type OwnActor } from './changes.ts';

const secretBytes = 32;
/** Both secrets hold for so long, so that no delivery is lost while a sender takes over the new one. */
const rotationMs = 86_400_000;

/** The secrets that senders of webhooks sign with. They are sealed, and shown once. */
export function createAutomationSecrets(database: Database, envelope: Envelope) {
  return {
    /** Makes a new one. The one before holds for another day. Throws 404. */
    async renew(
      { spaceId, id }: { spaceId: string; id: string },
      actor: OwnActor,
    ): Promise<{ secret: string; previousUntil: Date | null }> {
      const secret = `whsec_${randomBytes(secretBytes).toString('base64')}`;
      keepOutOfLogs([secret]);
      const sealed = await envelope.seal(spaceId, sealedContext(id), Buffer.from(secret, 'utf8'));
      return transaction(database, async (tx) => {
        await lockOwn(tx, { spaceId, userId: actor.userId, id });
        const [{ known } = { known: null }] = await select<{ known: Buffer | null }>(
          tx,
          'SELECT secret AS known FROM automations WHERE id = ?',
          [id],
        );
        const previousUntil = known === null ? null : new Date(Date.now() + rotationMs);
        const row = { secret: sealed, old_secret: known, old_secret_until: previousUntil };
        await execute(tx, 'UPDATE automations SET ? WHERE id = ?', [row, id]);
        await appendAudit(tx, spaceId, actor, 'automation.secret-made', id);
        return { secret, previousUntil };
      });
    },

    /** Those that hold now; none where none was ever made. Throws 404. */
    async of(id: string): Promise<string[]> {
      const [rows] = await database.pool.query<RowDataPacket[]>(
        `SELECT space_id AS spaceId, secret, old_secret AS oldSecret, old_secret_until AS oldUntil FROM automations
          WHERE id = ? AND deleted_at IS NULL`,
        [id],
      );
      const [row] = rows as {
        spaceId: string;
        secret: Buffer | null;
        oldSecret: Buffer | null;
        oldUntil: Date | null;
      }[];
      if (row === undefined) throw notFound('automation');
      const isRotating = row.oldUntil !== null && row.oldUntil > new Date();
      const sealed = [row.secret, isRotating ? row.oldSecret : null].filter((one) => one !== null);
      const secrets = await Promise.all(
        sealed.map(async (one) => (await envelope.open(row.spaceId, sealedContext(id), one)).toString('utf8')),
      );
      keepOutOfLogs(secrets);
      return secrets;
    },
  };
}

export type AutomationSecrets = ReturnType<typeof createAutomationSecrets>;

function sealedContext(id: string): string {
  return `automations/${id}`;
}
