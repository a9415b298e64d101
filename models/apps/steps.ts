import type { RowDataPacket } from 'mysql2';
import type { Transaction } from 'sequelize';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { driveModels } from '../drive/models.ts';
import { isQuiet, quietLookMs } from '../installation/installation.ts';
import { endedAs, finishAttempt, insertAttempt, noteLog } from './attempts.ts';
import { hasPlace, spaceHasPlace } from './line.ts';
import { isForPeople, type RunOutcome } from './outcome.ts';
import { isLookedAt, isStillLinked } from './previews.ts';
import { changeRun, findRun, isActive, lockRun, type Run, type RunTrigger } from './run.ts';
import { countEnd } from './schedules.ts';

/** What a run's workflow does next. */
export type RunStep =
  | { do: 'rest'; badEnd?: RunBadEnd }
  /** Others of its component run, or it is to be tried again later. It is told when it is its turn. */
  | { do: 'watch'; waitMs: number }
  | { do: 'attempt'; attempt: number; timeoutMs: number; of: RunOf };

/** What is run, for the Temporal UI. The app is named by its id: its own name is what people have typed. */
export type RunOf = Pick<Run, 'component' | 'itemId'>;

/** A run that was to do something and has not, as an operator finds it. */
export interface RunBadEnd {
  of: RunOf;
  status: 'failed' | 'timed_out' | 'cancelled';
  code: string | null;
  userId: string;
}

/** Nobody asks for these by hand. */
const automatic: readonly RunTrigger[] = ['webhook', 'schedule'];
const longestWaitMs = 10 * 60_000;
/** How the attempt before went is in its own row. */
const asBegun = { exitCode: null, endSignal: null, errorCode: null, errorDetail: null, output: null } as const;

/**
 * Says what is to be done next, and takes a place among those that run where there is one. Asked again, it says the
 * same.
 */
export async function nextRunStep(
  database: Database,
  runId: string,
  limits: { runsPerSpace: number },
): Promise<RunStep> {
  const found = await findRun(database, runId);
  if (found === undefined) return { do: 'rest' };
  const isHeldBack = automatic.includes(found.triggerKind) && (await isQuiet(database));
  const look = () => lookForStep(database, found, { ...limits, isHeldBack });
  // Whoever has ended while the first look was under way could not see that this one waits for it, and told it nothing.
  return (await look()) ?? (await look()) ?? { do: 'watch', waitMs: longestWaitMs };
}

/** Undefined where it has been noted just now that the run waits for others of its space. */
function lookForStep(
  database: Database,
  found: Run,
  { isHeldBack, ...limits }: { runsPerSpace: number; isHeldBack: boolean },
): Promise<RunStep | undefined> {
  return transaction(database, async (tx): Promise<RunStep | undefined> => {
    // One after the other, so that no two take the same place.
    const sql = 'SELECT live FROM apps WHERE id = ? FOR UPDATE';
    const [app] = await select<{ live: number | null }>(tx, sql, [found.appId]);
    const run = await lockRun(tx, found.id);
    if (run === undefined) return { do: 'rest' };
    if (!isActive(run)) return restOf(run);
    const isUnwanted =
      run.cancelRequestedAt !== null || app === undefined || app.live === null || !(await isLookedAt(tx, run));
    // While an attempt is under way, whoever makes it ends it.
    const isBetween = run.status === 'queued' || run.retryAt !== null;
    if (isUnwanted && isBetween) {
      await changeRun(tx, run, { status: 'cancelled', retryAt: null, endedAt: new Date(), waitsForSpace: null });
      return restOf(run);
    }
    if (isHeldBack && isBetween) return { do: 'watch', waitMs: quietLookMs };
    if (run.status === 'queued') {
      if (!(await hasPlace(tx, run))) {
        // It is told by those of its own component.
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
  if (status === 'succeeded' || status === 'queued' || status === 'running') return { do: 'rest' };
  return { do: 'rest', badEnd: { of: partsOf(run), status, code, userId } };
}

function partsOf({ component, itemId }: Run): RunOf {
  return { component, itemId };
}

/** The process of the attempt has begun: from now on, one that is not found was lost and is not started again. */
export async function noteStarted({ pool }: Pick<Database, 'pool'>, { id, attempt }: Run): Promise<void> {
  const sql = 'UPDATE app_run_attempts SET started_at = ? WHERE run_id = ? AND attempt = ? AND started_at IS NULL';
  await pool.query(sql, [new Date(), id, attempt]);
  // Last: until then it is looked for again, so whoever is killed in between leaves no log that nobody finds.
  await pool.query('UPDATE app_runs SET is_started = 1 WHERE id = ? AND attempt = ?', [id, attempt]);
}

interface AttemptOf {
  runId: string;
  attempt: number;
}

/** What is known of an attempt that is over. */
export interface AttemptEnd extends AttemptOf {
  outcome: RunOutcome;
  output: string;
  /** What its process has put out; null where it has put out nothing, or nobody knows what. */
  logBytes: number | null;
}

/** The run, locked, while this attempt of it is under way. */
async function lockAttempt(tx: Transaction, { runId, attempt }: AttemptOf): Promise<Run | undefined> {
  const run = await lockRun(tx, runId);
  const isUnderWay = run?.status === 'running' && run.attempt === attempt && run.retryAt === null;
  return isUnderWay ? run : undefined;
}

/**
 * Records how an attempt has ended, before anything else is done: whatever comes after, this is its end. The first one
 * counts. The attempt is under way until `closeAttempt`, so that its log can be kept.
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

/** Goes on after an attempt whose end is recorded, with its log where that was kept. Again, it changes nothing. */
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

/** Whether it is to be tried again after its present attempt, whose end is in the row. */
function isTriedAgain(run: Run, status: RunOutcome['status']): boolean {
  const isServing = run.spec.kind === 'web';
  // What serves is not to end by itself; what could not be started at all will not be the next time. A computer that
  // was stopped is not woken by what ran on it.
  const mayHelp = isServing
    ? run.isStarted && status !== 'cancelled' && run.errorCode !== 'RUN_COMPUTER_STOPPED'
    : (status === 'failed' || status === 'timed_out') && !isForPeople(run.errorCode);
  return mayHelp && run.attempt < run.spec.retry.attempts && run.cancelRequestedAt === null;
}

const longestPauseSeconds = 60;

/** In seconds; it grows for what serves, so that one that dies at once is not started without end. */
function pauseAfter({ attempt, spec }: Run): number {
  const { delaySeconds } = spec.retry;
  return spec.kind === 'web' ? Math.min(delaySeconds * 2 ** (attempt - 1), longestPauseSeconds) : delaySeconds;
}

/** Ends an attempt that has no log: as was recorded, else like this. */
export async function endAttempt(database: Database, of: AttemptOf, outcome: RunOutcome): Promise<void> {
  await noteEnd(database, { ...of, outcome, output: '', logBytes: null });
  await closeAttempt(database, of, null);
}

/** Asks for a run's end. False where it has ended already. */
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

/** Whether somebody wants a run to end, or it is not wanted any more, or whoever asked for it has been disabled. */
export async function isUnwanted({ pool }: Pick<Database, 'pool'>, runId: string): Promise<boolean> {
  const [rows] = await pool.query<RowDataPacket[]>(
    `SELECT 1 FROM app_runs r JOIN apps a ON a.id = r.app_id AND a.live = 1
            JOIN users u ON u.id = r.user_id AND u.disabled_at IS NULL
      WHERE r.id = ? AND r.active = 1 AND r.cancel_requested_at IS NULL AND ${isStillLinked}`,
    [runId, new Date()],
  );
  return rows.length === 0;
}
