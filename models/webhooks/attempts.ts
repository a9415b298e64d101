import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database.ts';
import { execute, select } from '../sql.ts';
import { type AttemptEnd, disabledBy, pauseMs, retryDelayMs } from './retries.ts';
import type { DueDelivery } from './rounds.ts';

export interface RetryLimits {
  /** Before the second attempt, the third, and so on. */
  retryDelaysMs: readonly number[];
  /** An endpoint that takes nothing for so long is disabled. */
  failingMs: number;
}

/** Records how an attempt has gone. One that was recorded before changes nothing. */
export async function noteAttempt(
  database: Database,
  endpointId: string,
  { id, attempts }: DueDelivery,
  end: AttemptEnd,
  { retryDelaysMs, failingMs }: RetryLimits,
): Promise<void> {
  await transaction(database, async (tx) => {
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
    if (row?.attempts !== attempts) return;
    const now = Date.now();
    const isTaken = end.error === null;
    const delayMs = isTaken ? undefined : retryDelayMs(end, attempts, retryDelaysMs);
    const state =
      delayMs === undefined ? endedNow(isTaken ? 'delivered' : 'failed') : { next_attempt_at: new Date(now + delayMs) };
    const change = { ...state, attempts: attempts + 1, last_answer: end.answer, last_error: end.error };
    await execute(tx, 'UPDATE webhook_deliveries SET ? WHERE id = ?', [change, id]);
    if (endpoint === undefined) return;
    if (!isTaken) await noteFailure(tx, endpointId, endpoint.failingSince ?? new Date(now), end, failingMs);
    else if (endpoint.failingSince !== null) {
      await execute(tx, 'UPDATE webhook_endpoints SET failing_since = NULL WHERE id = ?', [endpointId]);
    }
  });
}

async function noteFailure(tx: Transaction, id: string, since: Date, end: AttemptEnd, failingMs: number) {
  const now = Date.now();
  const failingForMs = now - since.getTime();
  const code = disabledBy(end, failingForMs, failingMs);
  if (code === undefined) {
    const failing = { failing_since: since, paused_until: new Date(now + pauseMs(end, failingForMs)) };
    await execute(tx, 'UPDATE webhook_endpoints SET ? WHERE id = ?', [failing, id]);
  } else await disableEndpoint(tx, id, code);
}

/** Has an endpoint told of nothing until a person enables it. */
export async function disableEndpoint(tx: Transaction, id: string, code: 'GONE' | 'FAILING' | 'BACKLOG') {
  const disabled = {
    enabled: 0,
    disabled_code: code,
    disabled_at: new Date(),
    failing_since: null,
    paused_until: null,
  };
  await execute(tx, 'UPDATE webhook_endpoints SET ? WHERE id = ? AND enabled = 1', [disabled, id]);
}

/** How the row of a delivery changes that has ended. */
export function endedNow(status: 'delivered' | 'failed') {
  return { status, pending: null, next_attempt_at: null, ended_at: new Date() };
}
