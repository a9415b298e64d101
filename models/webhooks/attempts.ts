import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type AttemptEnd, disabledBy, pauseMs, retryDelayMs } from './retries.ts';
import type { DueDelivery } from './rounds.ts';

export interface RetryLimits {
  /** The delays before the second attempt, the third, and so on. */
  retryDelaysMs: readonly number[];
  /** An endpoint that has failed for this long is disabled. */
  failingMs: number;
}

/**
 * Records the outcome of an attempt. Ignores an attempt that was recorded before. Ignores a failed attempt at an
 * address that the endpoint no longer has: the present address is tried at once.
 */
export async function noteAttempt(
  database: Database,
  { endpointId, revision }: { endpointId: string; revision: number },
  { id, attempts, replayId }: DueDelivery,
  end: AttemptEnd,
  { retryDelaysMs, failingMs }: RetryLimits,
): Promise<void> {
  await transaction(database, async (tx) => {
    const [endpoint] = await select<EndpointState>(
      tx,
      `SELECT revision, failing_since, paused_until FROM webhook_endpoints
        WHERE id = ? FOR UPDATE`,
      [endpointId],
    );
    const [row] = await select<{ attempts: number; replayId: string | null }>(
      tx,
      `SELECT attempts, replay_id FROM webhook_deliveries WHERE id = ? AND status = 'pending' FOR UPDATE`,
      [id],
    );
    if (row?.attempts !== attempts || row.replayId !== replayId) return;
    const now = Date.now();
    const isTaken = end.error === null;
    const isPresent = endpoint?.revision === revision;
    if (!isTaken && endpoint !== undefined && !isPresent) return;
    const delayMs = isTaken ? undefined : retryDelayMs(end, attempts, retryDelaysMs);
    const state =
      delayMs === undefined ? endedNow(isTaken ? 'delivered' : 'failed') : { nextAttemptAt: new Date(now + delayMs) };
    const change = { ...state, attempts: attempts + 1, lastAnswer: end.answer, lastError: end.error };
    await execute(tx, 'UPDATE webhook_deliveries SET ? WHERE id = ?', [change, id]);
    if (!isPresent) return;
    if (!isTaken) await noteFailure(tx, endpointId, endpoint, { end, isLast: delayMs === undefined, failingMs });
    else if (endpoint.failingSince !== null) {
      await execute(tx, 'UPDATE webhook_endpoints SET failing_since = NULL WHERE id = ?', [endpointId]);
    }
  });
}

interface EndpointState {
  revision: number;
  failingSince: Date | null;
  pausedUntil: Date | null;
}

interface Failure {
  end: AttemptEnd;
  /** Whether this was the delivery's last attempt. */
  isLast: boolean;
  failingMs: number;
}

async function noteFailure(
  tx: Transaction,
  id: string,
  { failingSince, pausedUntil }: EndpointState,
  { end, isLast, failingMs }: Failure,
) {
  const now = Date.now();
  const since = failingSince ?? new Date(now);
  const failingForMs = now - since.getTime();
  const code = disabledBy(end, failingForMs, { isLast, longestFailingMs: failingMs });
  if (code === undefined) {
    // A parallel answer must not shorten the pause that another has asked for.
    const until = Math.max(now + pauseMs(end, failingForMs), pausedUntil?.getTime() ?? 0);
    const failing = { failingSince: since, pausedUntil: new Date(until) };
    await execute(tx, 'UPDATE webhook_endpoints SET ? WHERE id = ?', [failing, id]);
  } else await disableEndpoint(tx, id, code);
}

/** Disables an endpoint until a person enables it. */
export async function disableEndpoint(tx: Transaction, id: string, code: 'GONE' | 'FAILING' | 'BACKLOG') {
  const disabled = {
    enabled: 0,
    disabledCode: code,
    disabledAt: new Date(),
    failingSince: null,
    pausedUntil: null,
  };
  await execute(tx, 'UPDATE webhook_endpoints SET ? WHERE id = ? AND enabled = 1', [disabled, id]);
}

/** The changes to the row of a delivery that has ended. */
export function endedNow(status: 'delivered' | 'failed') {
  return { status, pending: null, nextAttemptAt: null, endedAt: new Date() };
}
