import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { deleteByIds, deleteInBatches } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { afterCommit, type EventType } from './events.ts';

/** A delivery to an endpoint, and its outcome. */
export interface WebhookDelivery {
  id: string;
  endpointId: string;
  spaceId: string;
  type: EventType;
  /** JSON, exactly as it is sent. */
  body: string;
  status: 'pending' | 'delivered' | 'failed';
  /** Since it was made or replayed. */
  attempts: number;
  /** The status of the last answer. Null if none came. */
  lastAnswer: number | null;
  lastError: string | null;
  nextAttemptAt: Date | null;
  createdAt: Date;
  endedAt: Date | null;
}

interface Of {
  spaceId: string;
  endpointId: string;
  id: string;
}

const columns = `id, endpoint_id, space_id, type, body, status, attempts, last_answer, last_error, next_attempt_at,
  created_at, ended_at`;

/** An endpoint's deliveries, newest first. */
export async function listWebhookDeliveries(
  database: Pick<Database, 'pool'>,
  endpointId: string,
  page: PageRequest,
): Promise<Page<WebhookDelivery>> {
  const sql = `SELECT ${columns} FROM webhook_deliveries FORCE INDEX (webhook_deliveries_endpoint) WHERE endpoint_id = ?`;
  return readPage(database, page, { sql, values: [endpointId], by: 'id', order: 'desc' });
}

/** Throws 404. */
export async function getWebhookDelivery(
  { pool }: Pick<Database, 'pool'>,
  { spaceId, endpointId, id }: Of,
): Promise<WebhookDelivery> {
  const sql = `SELECT ${columns} FROM webhook_deliveries WHERE id = ? AND endpoint_id = ? AND space_id = ?`;
  const rows = await select<WebhookDelivery>(pool, sql, [id, endpointId, spaceId]);
  if (rows[0] === undefined) throw notFound('delivery');
  return rows[0];
}

/**
 * Delivers again from the first attempt, under the same id. The same replay id is the same replay. Throws 404, 409
 * `DELIVERY_PENDING`.
 */
export async function replayWebhookDelivery(database: Database, of: Of, replayId: string): Promise<WebhookDelivery> {
  const { id, endpointId, spaceId } = await getWebhookDelivery(database, of);
  await transaction(database, async (tx) => {
    // Locks the endpoint first, as recording an attempt does.
    await resumeEndpoint(tx, endpointId);
    const sql = 'SELECT status, replay_id FROM webhook_deliveries WHERE id = ? FOR UPDATE';
    const [row] = await select<{ status: string; replayId: string | null }>(tx, sql, [id]);
    if (row?.replayId === replayId) return;
    if (row?.status === 'pending') {
      throw new DomainError(
        'conflict',
        'DELIVERY_PENDING',
        'The delivery is still being attempted. Try again when it has ended.',
      );
    }
    const anew = {
      ...{ status: 'pending', pending: 1, attempts: 0, nextAttemptAt: new Date(), endedAt: null },
      ...{ lastAnswer: null, lastError: null },
    };
    await execute(tx, 'UPDATE webhook_deliveries SET ? WHERE id = ?', [{ ...anew, replayId }, id]);
    afterCommit(tx, { id: endpointId, spaceId });
  });
  return getWebhookDelivery(database, of);
}

/** Ends the pause of a failing endpoint, since a person says that it is fixed. */
export async function resumeEndpoint(tx: Transaction, endpointId: string): Promise<void> {
  await execute(tx, 'UPDATE webhook_endpoints SET paused_until = NULL WHERE id = ?', [endpointId]);
}

/**
 * Makes one delivery of a deleted endpoint overdue. If a process is killed, the sweep finds the endpoint's other
 * deliveries by it.
 */
export async function rememberToForget(tx: Transaction, endpointId: string): Promise<void> {
  const overdue = { status: 'pending', pending: 1, nextAttemptAt: new Date() };
  const sql = 'UPDATE webhook_deliveries SET ? WHERE endpoint_id = ? ORDER BY id LIMIT 1';
  await execute(tx, sql, [overdue, endpointId]);
}

/** Removes the deliveries of a deleted endpoint. */
export async function forgetEndpointDeliveries(database: Database, endpointId: string): Promise<void> {
  await deleteInBatches(database, 'DELETE FROM webhook_deliveries WHERE endpoint_id = ? LIMIT ?', [endpointId]);
}

/** Removes deliveries from before `before` that have ended. Returns their number. */
export function forgetWebhookDeliveries(database: Database, before: Date, onBatch?: () => void): Promise<number> {
  const sql = `SELECT id FROM webhook_deliveries FORCE INDEX (webhook_deliveries_old) WHERE created_at < ?
    AND pending IS NULL ORDER BY created_at, id LIMIT ?`;
  return deleteByIds(database, 'webhook_deliveries', sql, [before], onBatch);
}
