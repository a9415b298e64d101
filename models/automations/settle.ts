import type { Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Automation, lockAutomation, pauseAutomation } from './automation.ts';

/** An automation is paused after this many failures in a row. */
const mostFailures = 5;

interface EndedRun {
  id: string;
  turnId: string | null;
  status: 'completed' | 'failed' | 'stopped' | null;
  code: string | null;
  detail: string | null;
  endedAt: Date | null;
}

export interface Settled {
  automation: Automation;
  /** Set if it was paused now because of its failures. */
  paused?: Automation;
}

/** Settles the runs whose turns have ended: records their outcomes and costs. */
export async function settleRuns(database: Database, automationId: string): Promise<Partial<Settled>> {
  return transaction(database, async (tx) => {
    const automation = await lockAutomation(tx, automationId);
    return automation === undefined ? {} : settleIn(tx, automation);
  });
}

/** Like {@link settleRuns}, with the automation already locked. */
export async function settleIn(tx: Transaction, automation: Automation): Promise<Settled> {
  const ended = await select<EndedRun>(
    tx,
    `SELECT r.id, r.turn_id, t.status, t.error_code AS code, t.error_detail AS detail, t.ended_at
       FROM automation_runs r LEFT JOIN turns t ON t.id = r.turn_id
      WHERE r.automation_id = ? AND r.status = 'started' AND (t.terminal = 1 OR t.id IS NULL) ORDER BY r.id`,
    [automation.id],
  );
  let [failures, cost] = [automation.failures, 0];
  let last: EndedRun | undefined;
  for (const run of ended) {
    const micro = run.turnId === null ? 0 : await costOfTurn(tx, run.turnId);
    // The turn's row was deleted with its thread.
    const status = run.status ?? 'stopped';
    const row = { status, code: run.code, detail: run.detail, costMicro: micro, endedAt: run.endedAt ?? new Date() };
    await execute(tx, 'UPDATE automation_runs SET ? WHERE id = ?', [row, run.id]);
    cost += micro;
    if (status === 'completed') failures = 0;
    if (status === 'failed') {
      failures++;
      last = run;
    }
  }
  if (ended.length > 0) {
    await execute(tx, 'UPDATE automations SET failures = ?, cost_micro = cost_micro + ? WHERE id = ?', [
      failures,
      cost,
      automation.id,
    ]);
  }
  return pauseIfFailing(tx, { ...automation, failures }, last?.detail ?? undefined);
}

/** Counts a run that could not begin. */
export async function countFailure(tx: Transaction, automation: Automation, detail: string): Promise<Settled> {
  const failures = automation.failures + 1;
  await execute(tx, 'UPDATE automations SET failures = ? WHERE id = ?', [failures, automation.id]);
  return pauseIfFailing(tx, { ...automation, failures }, detail);
}

async function pauseIfFailing(tx: Transaction, automation: Automation, last: string | undefined): Promise<Settled> {
  if (automation.failures < mostFailures || !automation.enabled) return { automation };
  const why = {
    code: 'FAILED_REPEATEDLY',
    detail: `The automation was paused after ${automation.failures} failures in a row. ${last ?? ''}`.trim(),
  };
  await pauseAutomation(tx, automation, why);
  const paused = { ...automation, enabled: false, pause: { ...why, at: new Date() } };
  return { automation: paused, paused };
}

/** The cost of its model calls, by the ledger. */
async function costOfTurn(tx: Transaction, turnId: string): Promise<number> {
  const [row] = await select<{ micro: number | string }>(
    tx,
    `SELECT COALESCE(SUM(ABS(e.amount)), 0) AS micro FROM ledger_transactions l
       JOIN ledger_entries e ON e.transaction_id = l.id AND e.account = 'spent'
      WHERE l.source_id >= ? AND l.source_id < ?`,
    // Ids of calls are the turn's id, a colon and the step. `;` is the character after the colon.
    [`call:${turnId}:`, `call:${turnId};`],
  );
  return Number(row?.micro ?? 0);
}

const settledAtOnce = 500;

/** Automations with a run to settle. */
export async function automationsToSettle({ pool }: Pick<Database, 'pool'>): Promise<string[]> {
  const sql = `SELECT DISTINCT r.automation_id AS id FROM automation_runs r FORCE INDEX (automation_runs_sweep)
       LEFT JOIN turns t ON t.id = r.turn_id
      WHERE r.status = 'started' AND (t.terminal = 1 OR t.id IS NULL) LIMIT ${settledAtOnce}`;
  const rows = await select(pool, sql);
  return rows.map(({ id }) => id as string);
}
