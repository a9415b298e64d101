import type { RowDataPacket } from 'mysql2';
import type { Envelope } from '../../crypto/envelope.ts';
import { type Actor, appendAudit } from '../audit.ts';
import { type Database, transaction } from '../database.ts';
import { execute, insert, select } from '../sql.ts';
import { newWebhookSecret, openWebhookSecrets, rotationMs } from '../webhookSecrets.ts';
import { type App, lockApp } from './app.ts';

type Of = Pick<App, 'id' | 'spaceId' | 'itemId'>;

/** The secrets that senders of webhooks to an app sign with. They are sealed, and shown once. */
export function createAppSecrets(database: Database, envelope: Envelope) {
  const placeOf = ({ id, spaceId }: Pick<Of, 'id' | 'spaceId'>) => ({ spaceId, context: `app_webhook_secrets/${id}` });
  return {
    /** Makes a new one. The one before holds for another day. Throws 404. */
    async renew(app: Of, actor: Actor): Promise<{ secret: string; previousUntil: Date | null }> {
      const { secret, sealed } = await newWebhookSecret(envelope, placeOf(app));
      return transaction(database, async (tx) => {
        await lockApp(tx, app);
        const sql = 'SELECT secret FROM app_webhook_secrets WHERE app_id = ? FOR UPDATE';
        const [known] = await select<{ secret: Buffer }>(tx, sql, [app.id]);
        const previousUntil = known === undefined ? null : new Date(Date.now() + rotationMs);
        const row = { secret: sealed, old_secret: known?.secret ?? null, old_secret_until: previousUntil };
        if (known === undefined) {
          await insert(tx, 'app_webhook_secrets', { app_id: app.id, space_id: app.spaceId, ...row });
        } else {
          await execute(tx, 'UPDATE app_webhook_secrets SET ? WHERE app_id = ?', [row, app.id]);
        }
        await appendAudit(tx, app.spaceId, actor, 'app.webhook-secret-made', app.itemId);
        return { secret, previousUntil };
      });
    },

    /** Those that hold now; none where none was ever made. */
    async of(app: Pick<Of, 'id' | 'spaceId'>): Promise<string[]> {
      const [rows] = await database.pool.query<RowDataPacket[]>(
        `SELECT secret, old_secret AS oldSecret, old_secret_until AS oldUntil FROM app_webhook_secrets WHERE app_id = ?`,
        [app.id],
      );
      const [row] = rows as { secret: Buffer; oldSecret: Buffer | null; oldUntil: Date | null }[];
      return row === undefined ? [] : openWebhookSecrets(envelope, placeOf(app), row);
    },
  };
}

export type AppSecrets = ReturnType<typeof createAppSecrets>;
