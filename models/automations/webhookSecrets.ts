import type { RowDataPacket } from 'mysql2';
import type { Envelope } from '../../crypto/envelope.ts';
import { appendAudit } from '../audit.ts';
import { type Database, transaction } from '../database.ts';
import { notFound } from '../errors.ts';
import { execute, select } from '../sql.ts';
import { newWebhookSecret, openWebhookSecrets, rotationMs } from '../webhookSecrets.ts';
import { lockOwn, type OwnActor } from './changes.ts';

/** The secrets that senders of webhooks sign with. They are sealed, and shown once. */
export function createAutomationSecrets(database: Database, envelope: Envelope) {
  return {
    /** Makes a new one. The one before holds for another day. Throws 404. */
    async renew(
      { spaceId, id }: { spaceId: string; id: string },
      actor: OwnActor,
    ): Promise<{ secret: string; previousUntil: Date | null }> {
      const { secret, sealed } = await newWebhookSecret(envelope, { spaceId, context: sealedContext(id) });
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
      return openWebhookSecrets(envelope, { spaceId: row.spaceId, context: sealedContext(id) }, row);
    },
  };
}

export type AutomationSecrets = ReturnType<typeof createAutomationSecrets>;

function sealedContext(id: string): string {
  return `automations/${id}`;
}
