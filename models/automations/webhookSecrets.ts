import { notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import {
  newWebhookSecret,
  openWebhookSecrets,
  renewedRow,
  type SecretRequest,
  type SecretRow,
  shownSecret,
} from '../webhooks/secrets.ts';
import { lockOwn, type OwnActor } from './changes.ts';

const secretColumns = 'secret_id, secret, old_secret_until AS oldUntil FROM automations';

interface Of {
  spaceId: string;
  id: string;
}

/** The secrets with which senders of webhooks sign. They are sealed, and shown once. */
export function createAutomationSecrets(database: Database, envelope: Envelope) {
  return {
    /**
     * Makes a new secret. The previous one stays valid for another day. Throws 404, and 409 `SECRET_RENEWED_LATELY`.
     */
    async renew({ spaceId, id }: Of, request: SecretRequest, actor: OwnActor): Promise<void> {
      const sealed = await newWebhookSecret(envelope, { spaceId, context: sealedContext(id) });
      await transaction(database, async (tx) => {
        await lockOwn(tx, { spaceId, userId: actor.userId, id });
        const [known] = await select<SecretRow>(tx, `SELECT ${secretColumns} WHERE id = ?`, [id]);
        if (known?.secretId === request.id) return;
        await execute(tx, 'UPDATE automations SET ? WHERE id = ?', [renewedRow(known, sealed, request), id]);
        await appendAudit(tx, spaceId, actor, 'automation.secret-made', id);
      });
    },

    /** The secret with this id, as long as it is the present one. Throws 409 `SECRET_RENEWED`. */
    async shown({ spaceId, id }: Of, secretId: string): Promise<{ secret: string; previousUntil: Date | null }> {
      const rows = await select<SecretRow>(database.pool, `SELECT ${secretColumns} WHERE id = ?`, [id]);
      return shownSecret(envelope, { spaceId, context: sealedContext(id) }, rows[0], secretId);
    },

    /** The secrets that are valid now. Empty if none was ever made. Throws 404. */
    async of(id: string): Promise<string[]> {
      const [row] = await select<{
        spaceId: string;
        secret: Buffer | null;
        oldSecret: Buffer | null;
        oldUntil: Date | null;
      }>(
        database.pool,
        `SELECT space_id, secret, old_secret, old_secret_until AS oldUntil FROM automations
          WHERE id = ? AND deleted_at IS NULL`,
        [id],
      );
      if (row === undefined) throw notFound('automation');
      return openWebhookSecrets(envelope, { spaceId: row.spaceId, context: sealedContext(id) }, row);
    },
  };
}

export type AutomationSecrets = ReturnType<typeof createAutomationSecrets>;

function sealedContext(id: string): string {
  return `automations/${id}`;
}
