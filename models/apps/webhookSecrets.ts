import type { Envelope } from '../../crypto/envelope.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';
import {
  newWebhookSecret,
  openWebhookSecrets,
  renewedRow,
  type SecretRequest,
  type SecretRow,
  shownSecret,
} from '../webhooks/secrets.ts';
import { type App, lockApp } from './app.ts';

const secretColumns = 'secret_id, secret, old_secret_until AS oldUntil FROM app_webhook_secrets';

type Of = Pick<App, 'id' | 'spaceId' | 'itemId'>;

/** The secrets with which senders of webhooks sign. They are stored sealed, and shown once. */
export function createAppSecrets(database: Database, envelope: Envelope) {
  const placeOf = ({ id, spaceId }: Pick<Of, 'id' | 'spaceId'>) => ({ spaceId, context: `app_webhook_secrets/${id}` });
  return {
    /** Makes a new secret. The previous one stays valid for a day. Throws 404, and 409 `SECRET_RENEWED_LATELY`. */
    async renew(app: Of, request: SecretRequest, actor: Actor): Promise<void> {
      const sealed = await newWebhookSecret(envelope, placeOf(app));
      await transaction(database, async (tx) => {
        await lockApp(tx, app);
        const [known] = await select<SecretRow>(tx, `SELECT ${secretColumns} WHERE app_id = ? FOR UPDATE`, [app.id]);
        if (known?.secretId === request.id) return;
        const row = renewedRow(known, sealed, request);
        if (known === undefined) {
          await insert(tx, 'app_webhook_secrets', { appId: app.id, spaceId: app.spaceId, ...row });
        } else {
          await execute(tx, 'UPDATE app_webhook_secrets SET ? WHERE app_id = ?', [row, app.id]);
        }
        await appendAudit(tx, app.spaceId, actor, 'app.webhook-secret-made', app.itemId);
      });
    },

    /** The secret with this id, while it is the current one. Throws 409 `SECRET_RENEWED`. */
    async shown(app: Of, id: string): Promise<{ secret: string; previousUntil: Date | null }> {
      const rows = await select<SecretRow>(database.pool, `SELECT ${secretColumns} WHERE app_id = ?`, [app.id]);
      return shownSecret(envelope, placeOf(app), rows[0], id);
    },

    /** The valid secrets of an app. Empty if none was ever made. */
    async of(app: Pick<Of, 'id' | 'spaceId'>): Promise<string[]> {
      const [row] = await select<{ secret: Buffer; oldSecret: Buffer | null; oldUntil: Date | null }>(
        database.pool,
        `SELECT secret, old_secret, old_secret_until AS oldUntil FROM app_webhook_secrets WHERE app_id = ?`,
        [app.id],
      );
      return row === undefined ? [] : openWebhookSecrets(envelope, placeOf(app), row);
    },
  };
}

export type AppSecrets = ReturnType<typeof createAppSecrets>;
