import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type OldestFirst, sweepPageSize, type Waiting } from '../sweeping/oldestFirst.ts';
import { disableEndpoint, endedNow } from './attempts.ts';
import { forgetEndpointDeliveries } from './deliveries.ts';

/** A delivery to attempt now. */
export interface DueDelivery {
  id: string;
  body: string;
  /** The number of earlier attempts, */
  attempts: number;
  /** since this replay, if it was replayed. */
  replayId: string | null;
}

/** The next step for an endpoint. */
export type Round =
  | { do: 'deliver'; spaceId: string; url: string; revision: number; deliveries: DueDelivery[] }
  | { do: 'watch'; waitMs: number }
  | { do: 'rest' };

interface EndpointRow {
  spaceId: string;
  url: string;
  revision: number;
  enabled: number;
  failingSince: Date | null;
  pausedUntil: Date | null;
  living: string | null;
}

/** Concurrent deliveries to an endpoint. Only one while it fails. */
const atOnce = 4;
const endedAtOnce = 1_000;

/** The next step for an endpoint. Ends its waiting deliveries if it is disabled, and removes them if it was deleted. */
export async function nextRound(database: Database, endpointId: string): Promise<Round> {
  const endpoint = await endpointOf(database, endpointId);
  if (endpoint === undefined) {
    await forgetEndpointDeliveries(database, endpointId);
    return { do: 'rest' };
  }
  const { spaceId, url, revision, enabled, failingSince, pausedUntil, living } = endpoint;
  // The space is deleted, and its purge removes the rest.
  if (living === null) return { do: 'rest' };
  if (enabled === 0) await endWaiting(database, endpointId);
  const most = failingSince === null ? atOnce : 1;
  const waiting = await select<DueDelivery & { dueAt: Date }>(
    database.pool,
    `SELECT id, body, attempts, replay_id, next_attempt_at AS dueAt FROM webhook_deliveries FORCE INDEX (webhook_deliveries_due)
      WHERE pending = 1 AND endpoint_id = ? ORDER BY next_attempt_at, id LIMIT ?`,
    [endpointId, most],
  );
  const [first] = waiting;
  if (first === undefined) return { do: 'rest' };
  const now = Date.now();
  const waitMs = Math.max(first.dueAt.getTime(), pausedUntil?.getTime() ?? 0) - now;
  if (waitMs > 0) return { do: 'watch', waitMs };
  const deliveries = waiting.filter(({ dueAt }) => dueAt.getTime() <= now);
  return { do: 'deliver', spaceId, url, revision, deliveries };
}

/** Disables an endpoint with more waiting deliveries than allowed, as `BACKLOG`, which its owner sees. */
export async function disableWhenFull(database: Database, endpointId: string, mostWaiting: number): Promise<boolean> {
  const sql = `SELECT id FROM webhook_deliveries FORCE INDEX (webhook_deliveries_due)
      WHERE pending = 1 AND endpoint_id = ? ORDER BY next_attempt_at, id LIMIT 1 OFFSET ?`;
  const rows = await select(database.pool, sql, [endpointId, mostWaiting]);
  if (rows.length === 0) return false;
  await transaction(database, (tx) => disableEndpoint(tx, endpointId, 'BACKLOG'));
  return true;
}

/** An endpoint with an overdue delivery. */
export interface OverdueEndpoint extends Waiting {
  /** Null if the endpoint was deleted. */
  endpointId: string | null;
  /** Null if the endpoint or its space was deleted. */
  spaceId: string | null;
  pausedUntil: Date | null;
}

/** A page of endpoints with a delivery that was due before `before`, ordered by id. */
export async function overdueEndpoints(
  { pool }: Pick<Database, 'pool'>,
  { before, after }: OldestFirst<OverdueEndpoint>,
): Promise<OverdueEndpoint[]> {
  const sql = `SELECT d.endpoint_id AS id, d.since, e.id AS endpointId, s.id AS spaceId, e.paused_until
       FROM (SELECT endpoint_id, MIN(next_attempt_at) AS since
               FROM webhook_deliveries FORCE INDEX (webhook_deliveries_due)
              WHERE pending = 1 AND endpoint_id > ?
              GROUP BY pending, endpoint_id HAVING since < ? ORDER BY pending, endpoint_id LIMIT ${sweepPageSize}) d
       LEFT JOIN webhook_endpoints e ON e.id = d.endpoint_id
       LEFT JOIN spaces s ON s.id = e.space_id AND s.deleted_at IS NULL
      ORDER BY d.endpoint_id`;
  return select<OverdueEndpoint>(pool, sql, [after?.id ?? '', before]);
}

async function endpointOf({ pool }: Pick<Database, 'pool'>, id: string): Promise<EndpointRow | undefined> {
  const sql = `SELECT e.space_id, e.url, e.revision, e.enabled, e.failing_since, e.paused_until,
            s.id AS living
       FROM webhook_endpoints e LEFT JOIN spaces s ON s.id = e.space_id AND s.deleted_at IS NULL
      WHERE e.id = ?`;
  const [row] = await select<EndpointRow>(pool, sql, [id]);
  return row;
}

/** Ends the waiting deliveries of a disabled endpoint, except pings. */
async function endWaiting({ pool }: Pick<Database, 'pool'>, endpointId: string): Promise<void> {
  const end = { ...endedNow('failed'), lastError: 'ENDPOINT_DISABLED' };
  for (;;) {
    const sql = `SELECT id FROM webhook_deliveries FORCE INDEX (webhook_deliveries_due)
        WHERE pending = 1 AND endpoint_id = ? AND type <> 'ping' LIMIT ${endedAtOnce}`;
    const rows = await select(pool, sql, [endpointId]);
    if (rows.length === 0) return;
    const ids = rows.map(({ id }) => id as string);
    await execute(pool, "UPDATE webhook_deliveries SET ? WHERE id IN (?) AND status = 'pending'", [end, ids]);
  }
}
