import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import { rememberToForget, resumeEndpoint } from './deliveries.ts';
import { addDelivery, afterCommit, type EventType } from './events.ts';
import {
  newWebhookSecret,
  openWebhookSecrets,
  renewedRow,
  type SecretRequest,
  type SecretRow,
  shownSecret,
} from './secrets.ts';

/** An address that a space wants notified of its events. */
export interface WebhookEndpoint {
  id: string;
  spaceId: string;
  url: string;
  /** Empty means all events. */
  events: EventType[];
  enabled: boolean;
  /** Why it was disabled automatically: `GONE`, `FAILING` or `BACKLOG`. Null if a person did. */
  disabledCode: string | null;
  disabledAt: Date | null;
  /** When it began to fail. Null if it accepts deliveries. */
  failingSince: Date | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
}

export type EndpointFields = Pick<WebhookEndpoint, 'url' | 'events' | 'enabled'>;

interface Of {
  spaceId: string;
  id: string;
}

const mostPerSpace = 20;
const columns = `id, space_id, url, events, enabled, disabled_code, disabled_at, failing_since, created_by,
  created_at, updated_at`;
const secretColumns = 'secret_id, secret, old_secret, old_secret_until AS oldUntil';

/** The endpoints of spaces. Signing secrets are sealed, and shown only to the caller who makes one. */
export function createWebhookEndpoints(database: Database, envelope: Envelope) {
  async function get({ spaceId, id }: Of): Promise<WebhookEndpoint> {
    const rows = await select(database.pool, `SELECT ${columns} FROM webhook_endpoints WHERE id = ? AND space_id = ?`, [
      id,
      spaceId,
    ]);
    if (rows[0] === undefined) throw notFound('webhook endpoint');
    return read(rows[0]);
  }

  return {
    get,

    /** A space's endpoints, oldest first. */
    async list(spaceId: string, page: PageRequest): Promise<Page<WebhookEndpoint>> {
      const sql = `SELECT ${columns} FROM webhook_endpoints WHERE space_id = ?`;
      return readPage(database, page, { sql, values: [spaceId], by: 'id', order: 'asc', read });
    },

    /** The same id is the same endpoint. Throws 404, 422 `TOO_MANY_WEBHOOK_ENDPOINTS`. */
    async add({ spaceId, id }: Of, fields: EndpointFields, actor: Actor & { userId: string }): Promise<void> {
      const secret = await newWebhookSecret(envelope, { spaceId, context: sealedContext(id) });
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        const known = await select<{ id: string }>(tx, 'SELECT id FROM webhook_endpoints WHERE space_id = ?', [
          spaceId,
        ]);
        if (known.some((one) => one.id === id)) return;
        if (known.length >= mostPerSpace) {
          const detail = `A space has at most ${mostPerSpace} webhook endpoints. Delete one first.`;
          throw new DomainError('unprocessable', 'TOO_MANY_WEBHOOK_ENDPOINTS', detail);
        }
        const now = new Date();
        await insert(tx, 'webhook_endpoints', {
          ...{ id, spaceId, ...rowOf(fields), secret, secretId: id },
          ...{ createdBy: actor.userId, createdAt: now, updatedAt: now },
        });
        await appendAudit(tx, spaceId, actor, 'webhook-endpoint.made', id);
      });
    },

    /** Changes the given fields. A given `enabled` or `url` resets its failures. Throws 404. */
    async change({ spaceId, id }: Of, fields: Partial<EndpointFields>, actor: Actor): Promise<WebhookEndpoint> {
      await transaction(database, async (tx) => {
        await lock(tx, { spaceId, id });
        const isSaid = fields.enabled !== undefined && { disabledCode: null, disabledAt: null };
        const beginsAnew = isSaid || fields.url !== undefined;
        const row = {
          ...{ ...rowOf(fields), ...isSaid, pausedUntil: null, updatedAt: new Date() },
          ...(beginsAnew && { failingSince: null }),
        };
        const raised = beginsAnew ? ', revision = revision + 1' : '';
        await execute(tx, `UPDATE webhook_endpoints SET ?${raised} WHERE id = ?`, [row, id]);
        await appendAudit(tx, spaceId, actor, 'webhook-endpoint.changed', id);
        afterCommit(tx, { id, spaceId });
      });
      return get({ spaceId, id });
    },

    /** Removes the endpoint and its deliveries. Throws 404. */
    async remove({ spaceId, id }: Of, actor: Actor): Promise<void> {
      await transaction(database, async (tx) => {
        await lock(tx, { spaceId, id });
        await execute(tx, 'DELETE FROM webhook_endpoints WHERE id = ?', [id]);
        await rememberToForget(tx, id);
        await appendAudit(tx, spaceId, actor, 'webhook-endpoint.deleted', id);
        afterCommit(tx, { id, spaceId });
      });
    },

    /** Adds an empty delivery to test the endpoint. The same id is the same delivery. Throws 404. */
    async ping({ spaceId, id }: Of, deliveryId: string): Promise<void> {
      await transaction(database, async (tx) => {
        await lock(tx, { spaceId, id });
        await resumeEndpoint(tx, id);
        const data = { endpointId: id, spaceId };
        await addDelivery(tx, id, { id: `ping:${deliveryId}`, type: 'ping', spaceId, data }, deliveryId);
      });
    },

    /** Makes a new secret. The previous one signs too for another day. Throws 404, and 409 `SECRET_RENEWED_LATELY`. */
    async renew({ spaceId, id }: Of, request: SecretRequest, actor: Actor): Promise<void> {
      const sealed = await newWebhookSecret(envelope, { spaceId, context: sealedContext(id) });
      await transaction(database, async (tx) => {
        await lock(tx, { spaceId, id });
        const [known] = await select<SecretRow>(tx, `SELECT ${secretColumns} FROM webhook_endpoints WHERE id = ?`, [
          id,
        ]);
        if (known?.secretId === request.id) return;
        await execute(tx, 'UPDATE webhook_endpoints SET ? WHERE id = ?', [renewedRow(known, sealed, request), id]);
        await appendAudit(tx, spaceId, actor, 'webhook-endpoint.secret-made', id);
      });
    },

    /** The secret with this id, as long as it is the present one. Throws 409 `SECRET_RENEWED`. */
    async shown({ spaceId, id }: Of, secretId: string): Promise<{ secret: string; previousUntil: Date | null }> {
      return shownSecret(envelope, { spaceId, context: sealedContext(id) }, await secretRow(id), secretId);
    },

    /** The secrets that sign deliveries now, newest first. */
    async secrets({ spaceId, id }: Of): Promise<string[]> {
      const row = await secretRow(id);
      return row === undefined ? [] : openWebhookSecrets(envelope, { spaceId, context: sealedContext(id) }, row);
    },
  };

  async function secretRow(id: string) {
    const sql = `SELECT ${secretColumns} FROM webhook_endpoints WHERE id = ?`;
    const [row] = await select<SecretRow & { oldSecret: Buffer | null }>(database.pool, sql, [id]);
    return row;
  }
}

export type WebhookEndpoints = ReturnType<typeof createWebhookEndpoints>;

async function lock(tx: Transaction, { spaceId, id }: Of): Promise<void> {
  const sql = 'SELECT id FROM webhook_endpoints WHERE id = ? AND space_id = ? FOR UPDATE';
  if ((await select(tx, sql, [id, spaceId])).length === 0) throw notFound('webhook endpoint');
}

function rowOf({ url, events, enabled }: Partial<EndpointFields>): Record<string, unknown> {
  return {
    ...(url !== undefined && { url }),
    ...(events !== undefined && { events: events.join(',') }),
    ...(enabled !== undefined && { enabled: enabled ? 1 : 0 }),
  };
}

function read(found: RowDataPacket): WebhookEndpoint {
  const row = found as unknown as Omit<WebhookEndpoint, 'events' | 'enabled'> & { events: string; enabled: number };
  const events = row.events === '' ? [] : (row.events.split(',') as EventType[]);
  return { ...row, events, enabled: row.enabled === 1 };
}

function sealedContext(id: string): string {
  return `webhook_endpoints/${id}`;
}
