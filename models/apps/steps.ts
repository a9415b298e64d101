import type { Transaction } from 'sequelize';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { isQuiet, quietLookMs } from '../installation/installation.ts';
import { endedAs, finishAttempt, insertAttempt, noteLog } from './attempts.ts';
import { hasPlace, spaceHasPlace } from './line.ts';
import { isForPeople, type RunOutcome } from './outcome.ts';
import { isLookedAt, isStillLinked } from './previews.ts';
import { changeRun, findRun, isActive, lockRun, type Run, type RunStatus, type RunTrigger } from './run.ts';
import { countEnd } from './schedules.ts';

/** The next step of a run's workflow. */
export type RunStep =
  | { do: 'rest'; status?: RunStatus; badEnd?: RunBadEnd }
  /** The run waits for its turn, or for a retry. It is told when its turn comes. */
  | { do: 'watch'; waitMs: number }
  | { do: 'attempt'; attempt: number; timeoutMs: number; of: RunOf };

/** Names the run in the Temporal UI. It has the app's id, because the app's name is user input. */
export type RunOf = Pick<Run, 'component' | 'itemId'>;

/** A run that did not succeed, as operators see it. */
export interface RunBadEnd {
  of: RunOf;
  status: 'failed' | 'timed_out' | 'cancelled';
  code: string | null;
  userId: string;
}

/** Triggers that no person asks for. */
const automatic: readonly RunTrigger[] = ['webhook', 'schedule'];
const longestWaitMs = 10 * 60_000;
/** Resets the result of the run. The result of the previous attempt is in its own row. */
const asBegun = { exitCode: null, endSignal: null, errorCode: null, errorDetail: null, output: null } as const;

/** Decides the next step of a run, and takes a slot if one is free. Asked again, it returns the same step. */
export async function nextRunStep(
  database: Database,
  runId: string,
  limits: { runsPerSpace: number },
): Promise<RunStep> {
  const found = await findRun(database, runId);
  if (found === undefined) return { do: 'rest' };
  const isHeldBack = automatic.includes(found.triggerKind) && (await isQuiet(database));
  const look = () => lookForStep(database, found, { ...limits, isHeldBack });
  // A run that ended during the first look could not see that this one waits, and told it nothing. So look twice.
  return (await look()) ?? (await look()) ?? { do: 'watch', waitMs: longestWaitMs };
}

/** Undefined if it was just recorded that the run waits for others of its space. */
function lookForStep(
  database: Database,
  found: Run,
  { isHeldBack, ...limits }: { runsPerSpace: number; isHeldBack: boolean },
): Promise<RunStep | undefined> {
  return transaction(database, async (tx): Promise<RunStep | undefined> => {
    // The lock serializes the looks at an app, so that two runs cannot take the same slot.
    const sql = 'SELECT live FROM apps WHERE id = ? FOR UPDATE';
    const [app] = await select<{ live: number | null }>(tx, sql, [found.appId]);
    const run = await lockRun(tx, found.id);
    if (run === undefined) return { do: 'rest' };
    if (!isActive(run)) return restOf(run);
    const isUnwanted =
      run.cancelRequestedAt !== null || app === undefined || app.live === null || !(await isLookedAt(tx, run));
    // While an attempt is under way, its worker ends it.
    const isBetween = run.status === 'queued' || run.retryAt !== null;
    if (isUnwanted && isBetween) {
      await changeRun(tx, run, { status: 'cancelled', retryAt: null, endedAt: new Date(), waitsForSpace: null });
      return restOf(run);
    }
    if (isHeldBack && isBetween) return { do: 'watch', waitMs: quietLookMs };
    if (run.status === 'queued') {
      if (!(await hasPlace(tx, run))) {
        // Runs of its own component tell it.
        if (run.waitsForSpace) await changeRun(tx, run, { waitsForSpace: null });
        return { do: 'watch', waitMs: longestWaitMs };
      }
      if (!(await spaceHasPlace(tx, run, limits))) {
        if (run.waitsForSpace) return { do: 'watch', waitMs: longestWaitMs };
        await changeRun(tx, run, { waitsForSpace: true });
        return undefined;
      }
      await changeRun(tx, run, { status: 'running', attempt: 1, startedAt: new Date(), waitsForSpace: null });
      await insertAttempt(tx, run);
    } else if (run.retryAt !== null) {
      const waitMs = run.retryAt.getTime() - Date.now();
      if (waitMs > 0) return { do: 'watch', waitMs };
      await changeRun(tx, run, { ...asBegun, attempt: run.attempt + 1, isStarted: false, retryAt: null });
      await insertAttempt(tx, run);
    }
    const timeoutMs = run.spec.timeoutSeconds * 1_000;
    return { do: 'attempt', attempt: run.attempt, timeoutMs, of: partsOf(run) };
  });
}

function restOf(run: Run): RunStep {
  const { status, errorCode: code, userId } = run;
  if (status === 'succeeded' || status === 'queued' || status === 'running') return { do: 'rest', status };
  return { do: 'rest', status, badEnd: { of: partsOf(run), status, code, userId } };
}

function partsOf({ component, itemId }: Run): RunOf {
  return { component, itemId };
}

/** Records that the attempt's process has begun. From now on, a missing process is lost and not started again. */
export async function noteStarted({ pool }: Pick<Database, 'pool'>, { id, attempt }: Run): Promise<void> {
  const sql = 'UPDATE app_run_attempts SET started_at = ? WHERE run_id = ? AND attempt = ? AND started_at IS NULL';
  await execute(pool, sql, [new Date(), id, attempt]);
  // Last: before this, the process is looked for again, so a kill in between leaves no log that is never found.
  await execute(pool, 'UPDATE app_runs SET is_started = 1 WHERE id = ? AND attempt = ?', [id, attempt]);
}

interface AttemptOf {
  runId: string;
  attempt: number;
}

/** The result of an attempt that is over. */
export interface AttemptEnd extends AttemptOf {
  outcome: RunOutcome;
  output: string;
  /** Bytes that its process printed. Null if it printed nothing, or the number is unknown. */
  logBytes: number | null;
}

/** Locks the run. Undefined unless this attempt of it is under way. */
async function lockAttempt(tx: Transaction, { runId, attempt }: AttemptOf): Promise<Run | undefined> {
  const run = await lockRun(tx, runId);
  const isUnderWay = run?.status === 'running' && run.attempt === attempt && run.retryAt === null;
  return isUnderWay ? run : undefined;
}

/**
 * Records how an attempt ended, before anything else is done. Only the first record counts. The attempt stays under way
 * until `closeAttempt`, so that its log can be stored.
 */
export async function noteEnd(database: Database, end: AttemptEnd): Promise<void> {
  await transaction(database, async (tx) => {
    const run = await lockAttempt(tx, end);
    if (run === undefined || (await endedAs(tx, run)) !== null) return;
    const { exitCode, signal: endSignal, error } = end.outcome;
    const why = { errorCode: error?.code ?? null, errorDetail: error?.detail.slice(0, 500) ?? null };
    await changeRun(tx, run, { exitCode, endSignal, ...why, output: end.output });
    await finishAttempt(tx, run, end.outcome, end.logBytes);
  });
}

/** Continues after an attempt whose end is recorded, with its log if there is one. Idempotent. */
export async function closeAttempt(
  database: Database,
  of: AttemptOf,
  log: { objectKey: string; sha256: Buffer } | null,
): Promise<void> {
  const found = await findRun(database, of.runId);
  if (found === undefined) return;
  await transaction(database, async (tx) => {
    const { Drive, DriveObject } = driveModels(tx);
    // The drive's lock comes first, as everywhere.
    if (log !== null) await Drive.lock(found.spaceId, tx);
    const run = await lockAttempt(tx, of);
    if (run === undefined) return;
    if (log !== null) {
      await DriveObject.keep(log.objectKey, log.sha256, tx);
      await noteLog(tx, run, log.objectKey);
    }
    const status = (await endedAs(tx, run)) ?? 'failed';
    if (isTriedAgain(run, status)) {
      const retryAt = new Date(Date.now() + pauseAfter(run) * 1_000);
      return changeRun(tx, run, { retryAt });
    }
    await changeRun(tx, run, { status, endedAt: new Date() });
    if (run.triggerKind === 'schedule') await countEnd(tx, run);
  });
}

/** Decides about a retry after the present attempt, whose end is in the row. */
function isTriedAgain(run: Run, status: RunOutcome['status']): boolean {
  const isServing = run.spec.kind === 'web';
  // A web process must not end by itself. One that never started will not start next time either. A computer that was
  // stopped must not be woken by a run on it.
  const mayHelp = isServing
    ? run.isStarted && status !== 'cancelled' && run.errorCode !== 'RUN_COMPUTER_STOPPED'
    : (status === 'failed' || status === 'timed_out') && !isForPeople(run.errorCode);
  return mayHelp && run.attempt < run.spec.retry.attempts && run.cancelRequestedAt === null;
}

const longestPauseSeconds = 60;

/** In seconds. It doubles for a web component, so that one that crashes at once is not restarted in a tight loop. */
function pauseAfter({ attempt, spec }: Run): number {
  const { delaySeconds } = spec.retry;
  return spec.kind === 'web' ? Math.min(delaySeconds * 2 ** (attempt - 1), longestPauseSeconds) : delaySeconds;
}

/** Ends an attempt without a log. An outcome that is already recorded counts, else this one. */
export async function endAttempt(database: Database, of: AttemptOf, outcome: RunOutcome): Promise<void> {
  await noteEnd(database, { ...of, outcome, output: '', logBytes: null });
  await closeAttempt(database, of, null);
}

/** Asks a run to end. False if it has ended already. */
export async function askToCancel(database: Database, run: Run, actor: Actor): Promise<boolean> {
  return transaction(database, async (tx) => {
    const locked = await lockRun(tx, run.id);
    if (locked === undefined || !isActive(locked)) return false;
    if (locked.cancelRequestedAt !== null) return true;
    await changeRun(tx, locked, { cancelRequestedAt: new Date() });
    await appendAudit(tx, locked.spaceId, actor, 'app.run-cancelled', locked.id);
    return true;
  });
}

/** True if the run was cancelled or has ended, its app or last link is gone, or its user was disabled. */
export async function isUnwanted({ pool }: Pick<Database, 'pool'>, runId: string): Promise<boolean> {
  const sql = `SELECT 1 FROM app_runs r JOIN apps a ON a.id = r.app_id AND a.live = 1
            JOIN users u ON u.id = r.user_id AND u.disabled_at IS NULL
      WHERE r.id = ? AND r.active = 1 AND r.cancel_requested_at IS NULL AND ${isStillLinked}`;
  const rows = await select(pool, sql, [runId, new Date()]);
  return rows.length === 0;
}
