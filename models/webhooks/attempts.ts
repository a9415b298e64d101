import type { RowDataPacket } from 'mysql2';
import { type Database, transaction } from '../database.ts';
import { execute, select } from '../sql.ts';

/** A delivery that is to be tried now. */
export interface DeliveryToTry {
  id: string;
  spaceId: string;
  endpointId: string;
  url: string;
  body: string;
  /** How many attempts were made before. */
  attempts: number;
  /** Until the attempt is due; 0 or less where it is. */
  waitMs: number;
}

/** How an attempt has gone: the status of the answer, or why there was none. */
export type AttemptEnd = { answer: number; error: string | null } | { answer: null; error: string };

export interface RetryLimits {
  /** Before the second attempt, the third, and so on. */
  retryDelaysMs: readonly number[];
  /** An endpoint that takes nothing for so long is disabled. */
  failingMs: number;
}

const gone = 410;

/** Undefined where it has ended, or its space is deleted. One whose endpoint takes nothing any more is ended here. */
export async function deliveryToTry(database: Database, id: string): Promise<DeliveryToTry | undefined> {
  const [rows] = await database.pool.query<RowDataPacket[]>(
    `SELECT d.id, d.space_id AS spaceId, d.endpoint_id AS endpointId, d.body, d.attempts, d.next_attempt_at AS dueAt,
            d.type, e.url, e.enabled, s.id AS living
       FROM webhook_deliveries d LEFT JOIN webhook_endpoints e ON e.id = d.endpoint_id
       LEFT JOIN spaces s ON s.id = d.space_id AND s.deleted_at IS NULL
      WHERE d.id = ? AND d.status = 'pending'`,
    [id],
  );
  const row = rows[0] as
    | (DeliveryToTry & { dueAt: Date; type: string; enabled: number | null; living: string | null })
    | undefined;
  if (row === undefined) return undefined;
  const { dueAt, enabled, living, type, ...found } = row;
  const isWanted = living !== null && enabled !== null && (enabled === 1 || type === 'ping');
  if (!isWanted) {
    const error = living === null ? 'SPACE_DELETED' : enabled === null ? 'ENDPOINT_DELETED' : 'ENDPOINT_DISABLED';
    const end = { ...ended('failed'), last_error: error };
    await database.pool.query("UPDATE webhook_deliveries SET ? WHERE id = ? AND status = 'pending'", [end, id]);
    return undefined;
  }
  return { ...found, waitMs: dueAt.getTime() - Date.now() };
}

/**
 * Records how an attempt has gone. Returns the milliseconds until the next one; undefined where there is none. An attempt
 * that was recorded before changes nothing.
 */
export async function noteAttempt(
  database: Database,
  { id, endpointId, attempts }: Pick<DeliveryToTry, 'id' | 'endpointId' | 'attempts'>,
  { answer, error }: AttemptEnd,
  { retryDelaysMs, failingMs }: RetryLimits,
): Promise<number | undefined> {
  return transaction(database, async (tx) => {
    const [endpoint] = await select<{ failingSince: Date | null }>(
      tx,
      'SELECT failing_since AS failingSince FROM webhook_endpoints WHERE id = ? FOR UPDATE',
      [endpointId],
    );
    const [row] = await select<{ attempts: number }>(
      tx,
      "SELECT attempts FROM webhook_deliveries WHERE id = ? AND status = 'pending' FOR UPDATE",
      [id],
    );
    if (row === undefined || row.attempts !== attempts) return row && 0;
    const now = new Date();
    const isTaken = error === null;
    const delayMs = isTaken || answer === gone ? undefined : retryDelaysMs[attempts];
    const next = { next_attempt_at: new Date(now.getTime() + (delayMs ?? 0)) };
    const state = delayMs === undefined ? ended(isTaken ? 'delivered' : 'failed') : next;
    const change = { ...state, attempts: attempts + 1, last_answer: answer, last_error: error };
    await execute(tx, 'UPDATE webhook_deliveries SET ? WHERE id = ?', [change, id]);
    if (endpoint === undefined) return delayMs;
    const since = endpoint.failingSince ?? now;
    const code = answer === gone ? 'GONE' : now.getTime() - since.getTime() >= failingMs ? 'FAILING' : undefined;
    if (isTaken && endpoint.failingSince !== null) {
      await execute(tx, 'UPDATE webhook_endpoints SET failing_since = NULL WHERE id = ?', [endpointId]);
    } else if (!isTaken && code === undefined) {
      await execute(tx, 'UPDATE webhook_endpoints SET failing_since = ? WHERE id = ?', [since, endpointId]);
    } else if (!isTaken) {
      const disabled = { enabled: 0, disabled_code: code, disabled_at: now, failing_since: null };
      await execute(tx, 'UPDATE webhook_endpoints SET ? WHERE id = ? AND enabled = 1', [disabled, endpointId]);
    }
    return delayMs;
  });
}

function ended(status: 'delivered' | 'failed') {
  return { status, pending: null, next_attempt_at: null, ended_at: new Date() };
}
