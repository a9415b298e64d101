import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { idBound, newId } from '../../base/ids.ts';
import { takeTick } from '../../base/schedule.ts';
import type { TurnStatus } from '../chat/turnLog/chunks.ts';
import { deleteInBatches } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, insert, select } from '../database/sql.ts';
import { isQuiet } from '../installation/installation.ts';
import { type Waiting, waitingIn } from '../sweeping/oldestFirst.ts';
import { type Automation, lockAutomation } from './automation.ts';
import { lockOwn } from './changes.ts';

export type RunKind = 'schedule' | 'webhook' | 'manual';

/** `pending`: has no turn yet. `started`: has a turn whose end is not noted yet. */
export type RunStatus = 'pending' | 'started' | 'completed' | 'failed' | 'stopped' | 'skipped';

/** A run of an automation: what started it, and how it ended. */
export interface AutomationRun {
  id: string;
  automationId: string;
  kind: RunKind;
  scheduledAt: Date | null;
  status: RunStatus;
  code: string | null;
  detail: string | null;
  turnId: string | null;
  /** The present status of its turn. Null if it has none. */
  turnStatus: TurnStatus | null;
  costMicro: number | null;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

const columns = `r.id, r.automation_id, r.kind, r.scheduled_at, r.status, r.turn_id, t.status AS turnStatus, r.cost_micro,
  COALESCE(r.code, t.error_code) AS code, COALESCE(r.detail, t.error_detail) AS detail, r.created_at, r.started_at,
  COALESCE(r.ended_at, t.ended_at) AS endedAt`;
const dayMs = 86_400_000;

/** Newest first. */
export async function listRuns(
  database: Pick<Database, 'pool'>,
  automationId: string,
  page: PageRequest,
): Promise<Page<AutomationRun>> {
  const sql = `SELECT ${columns} FROM automation_runs r FORCE INDEX (automation_runs_list)
    LEFT JOIN turns t ON t.id = r.turn_id WHERE r.automation_id = ?`;
  return readPage(database, page, { sql, values: [automationId], by: 'r.id', order: 'desc', read });
}

export async function getRun({ pool }: Pick<Database, 'pool'>, id: string): Promise<AutomationRun> {
  const sql = `SELECT ${columns} FROM automation_runs r LEFT JOIN turns t ON t.id = r.turn_id WHERE r.id = ?`;
  const rows = await select(pool, sql, [id]);
  if (rows[0] === undefined) throw notFound('run');
  return read(rows[0]);
}

/** Adds a manual run, also of a paused automation. The same id is the same run. Throws 404, 429. */
export async function askToRun(
  database: Database,
  where: { spaceId: string; userId: string; id: string },
  runId: string,
  limits: { maxRunsPerDay: number },
): Promise<void> {
  await transaction(database, async (tx) => {
    const automation = await lockOwn(tx, where);
    if ((await select(tx, 'SELECT id FROM automation_runs WHERE id = ?', [runId])).length > 0) return;
    await requireRoomToday(tx, automation.id, limits);
    await addRun(tx, automation, { id: runId, kind: 'manual', key: runId });
  });
}

/**
 * Stores a webhook's delivery, once for each delivery id as long as the automation exists. Returns its run. Throws 404,
 * 409 `AUTOMATION_PAUSED`, 429.
 */
export async function keepDelivery(
  database: Database,
  automationId: string,
  delivery: { id: string; body: string },
  limits: { maxRunsPerDay: number },
): Promise<string> {
  return transaction(database, async (tx) => {
    const automation = await lockAutomation(tx, automationId);
    if (automation === undefined) throw notFound('automation');
    const key = `delivery:${delivery.id}`;
    const [known] = await select<{ id: string }>(
      tx,
      'SELECT id FROM automation_runs WHERE automation_id = ? AND trigger_key = ?',
      [automationId, key],
    );
    if (known !== undefined) return known.id;
    if (!automation.enabled) {
      throw new DomainError(
        'conflict',
        'AUTOMATION_PAUSED',
        'This automation is paused and accepts no deliveries. Resume it first.',
      );
    }
    await requireRoomToday(tx, automationId, limits);
    const runId = newId('automationRun');
    await addRun(tx, automation, { id: runId, kind: 'webhook', key, payload: delivery.body });
    return runId;
  });
}

/**
 * Moves a schedule on if its tick has come, and returns the run of that tick. A tick has one run, whoever asks and
 * however often. `aheadMs` is how far the caller's clock may be ahead of ours.
 */
export async function takeDueRun(
  database: Database,
  automationId: string,
  limits: { catchUpMs: number; maxRunsPerDay: number; aheadMs: number },
): Promise<string | undefined> {
  // Does nothing while the installation is quiet. Once it is resumed, the tick is skipped or made up for.
  if (await isQuiet(database)) return undefined;
  return transaction(database, async (tx) => {
    const now = new Date(Date.now() + limits.aheadMs);
    const automation = await lockAutomation(tx, automationId);
    const due = automation?.nextRunAt;
    if (automation?.schedule == null || due == null || due > now) return undefined;
    const { tick, next } = takeTick(automation.schedule, due, now, limits.catchUpMs);
    await execute(tx, 'UPDATE automations SET next_run_at = ? WHERE id = ?', [next ?? null, automationId]);
    const id = newId('automationRun');
    const scheduledAt = tick ?? due;
    const common = { id, kind: 'schedule', key: `tick:${scheduledAt.toISOString()}`, scheduledAt } as const;
    const skipped =
      tick === undefined ? missed : (await hasRoomToday(tx, automationId, limits)) ? undefined : dailyLimit;
    await addRun(tx, automation, { ...common, skipped });
    return skipped === undefined ? id : undefined;
  });
}

const missed = { code: 'MISSED', detail: 'The server could not start this run in time, so the run was skipped.' };
const dailyLimit = { code: 'DAILY_LIMIT', detail: 'The automation has reached its limit of runs in 24 hours.' };

export type PendingRun = Waiting & { spaceId: string; automationId: string };

/** Runs without a turn. */
export const pendingRuns = waitingIn<PendingRun>({
  table: 'automation_runs',
  index: 'automation_runs_sweep',
  columns: ['space_id', 'automation_id'],
  where: "status = 'pending'",
  time: 'created_at',
});

const deletedAtOnce = 100;

/**
 * Removes deleted automations with their runs, and old runs. Keeps runs of webhooks, since they make deliveries unique.
 */
export async function purgeRuns(database: Pick<Database, 'pool'>, before: Date, onBatch: () => void): Promise<number> {
  const deleted = await select(
    database.pool,
    `SELECT id FROM automations FORCE INDEX (automations_deleted) WHERE deleted_at IS NOT NULL LIMIT ${deletedAtOnce}`,
  );
  let removed = 0;
  for (const { id } of deleted) {
    const runs = 'DELETE FROM automation_runs WHERE automation_id = ? LIMIT ?';
    removed += await deleteInBatches(database, runs, [id], onBatch);
    await execute(database.pool, 'DELETE FROM automations WHERE id = ?', [id]);
  }
  for (const kind of ['schedule', 'manual'] satisfies RunKind[]) {
    const old =
      "DELETE FROM automation_runs WHERE kind = ? AND id < ? AND status NOT IN ('pending', 'started') LIMIT ?";
    removed += await deleteInBatches(database, old, [kind, idBound('automationRun', before)], onBatch);
  }
  return removed;
}

async function requireRoomToday(tx: Transaction, automationId: string, limits: { maxRunsPerDay: number }) {
  if (await hasRoomToday(tx, automationId, limits)) return;
  throw new DomainError('rateLimited', dailyLimit.code, dailyLimit.detail, { retryAfterSeconds: 3_600 });
}

async function hasRoomToday(
  tx: Transaction,
  automationId: string,
  { maxRunsPerDay }: { maxRunsPerDay: number },
): Promise<boolean> {
  const since = new Date(Date.now() - dayMs);
  const rows = await select(tx, 'SELECT id FROM automation_runs WHERE automation_id = ? AND created_at > ? LIMIT ?', [
    automationId,
    since,
    maxRunsPerDay,
  ]);
  return rows.length < maxRunsPerDay;
}

async function addRun(
  tx: Transaction,
  { id: automationId, spaceId }: Pick<Automation, 'id' | 'spaceId'>,
  run: {
    id: string;
    kind: RunKind;
    key: string;
    scheduledAt?: Date;
    payload?: string;
    skipped?: { code: string; detail: string } | undefined;
  },
): Promise<void> {
  const now = new Date();
  await insert(tx, 'automation_runs', {
    ...{ id: run.id, automationId, spaceId, kind: run.kind, triggerKey: run.key },
    ...{ scheduledAt: run.scheduledAt ?? null, payload: run.payload ?? null, createdAt: now },
    status: run.skipped === undefined ? 'pending' : 'skipped',
    ...(run.skipped !== undefined && { ...run.skipped, endedAt: now }),
  });
}

function read(row: Record<string, unknown>): AutomationRun {
  const { costMicro } = row;
  return { ...(row as unknown as AutomationRun), costMicro: costMicro === null ? null : Number(costMicro) };
}
