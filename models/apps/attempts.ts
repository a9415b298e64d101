import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import type { RunOutcome } from './outcome.ts';
import type { Run } from './run.ts';

/** One start of a run's component. */
export interface Attempt {
  attempt: number;
  /** When its turn came. */
  beganAt: Date;
  /** When a worker first took it. */
  takenAt: Date | null;
  /** When its computer was running, and whether the computer had to be woken. */
  awakeAt: Date | null;
  woke: boolean | null;
  /** When its process was known to run. Null before that, and if it never ran. */
  startedAt: Date | null;
  endedAt: Date | null;
  status: RunOutcome['status'] | null;
  exitCode: number | null;
  endSignal: string | null;
  errorCode: string | null;
  errorDetail: string | null;
  /** The object with its log. Null before the end, and if the quota had no room. */
  logKey: string | null;
  /** Bytes that its process printed. Null if unknown. */
  logBytes: number | null;
}

const columns = `attempt, began_at, taken_at, awake_at, woke, started_at, ended_at, status, exit_code, end_signal,
  error_code, error_detail, log_key, log_bytes`;

/** The attempts of a run, oldest first. */
export async function attemptsOf({ pool }: Pick<Database, 'pool'>, runId: string): Promise<Attempt[]> {
  const sql = `SELECT ${columns} FROM app_run_attempts WHERE run_id = ? ORDER BY attempt`;
  const rows = await select(pool, sql, [runId]);
  return rows.map((row) => {
    const { woke, logBytes, ...rest } = row as Omit<Attempt, 'woke' | 'logBytes'> & {
      woke: number | null;
      logBytes: number | string | null;
    };
    return {
      ...rest,
      woke: woke === null ? null : woke === 1,
      logBytes: logBytes === null ? null : Number(logBytes),
    };
  });
}

export async function currentAttempt(database: Pick<Database, 'pool'>, run: Run): Promise<Attempt | undefined> {
  return (await attemptsOf(database, run.id)).find(({ attempt }) => attempt === run.attempt);
}

export async function insertAttempt(tx: Transaction, { id, attempt, spaceId }: Run): Promise<void> {
  const sql = 'INSERT IGNORE INTO app_run_attempts SET run_id = ?, attempt = ?, space_id = ?, began_at = ?';
  await execute(tx, sql, [id, attempt, spaceId, new Date()]);
}

/** Records that a worker took the attempt. The first time counts. */
export async function noteTaken({ pool }: Pick<Database, 'pool'>, { id, attempt }: Run): Promise<void> {
  const sql = 'UPDATE app_run_attempts SET taken_at = ? WHERE run_id = ? AND attempt = ? AND taken_at IS NULL';
  await execute(pool, sql, [new Date(), id, attempt]);
}

/** Records that the computer runs. The first time counts. */
export async function noteAwake({ pool }: Pick<Database, 'pool'>, run: Run, woke: boolean): Promise<void> {
  await execute(
    pool,
    'UPDATE app_run_attempts SET awake_at = ?, woke = ? WHERE run_id = ? AND attempt = ? AND awake_at IS NULL',
    [new Date(), woke ? 1 : 0, run.id, run.attempt],
  );
}

/** The recorded end of an attempt. Null if none is recorded. */
export async function endedAs(
  tx: Transaction,
  { id, attempt }: Pick<Run, 'id' | 'attempt'>,
): Promise<RunOutcome['status'] | null> {
  const sql = 'SELECT status FROM app_run_attempts WHERE run_id = ? AND attempt = ?';
  const [row] = await select<{ status: RunOutcome['status'] | null }>(tx, sql, [id, attempt]);
  return row?.status ?? null;
}

/** Records the end of an attempt. Its log is stored after that. */
export async function finishAttempt(
  tx: Transaction,
  { id, attempt }: Pick<Run, 'id' | 'attempt'>,
  { status, exitCode, signal, error }: RunOutcome,
  logBytes: number | null,
): Promise<void> {
  const row = {
    endedAt: new Date(),
    status,
    exitCode,
    endSignal: signal,
    errorCode: error?.code ?? null,
    errorDetail: error?.detail.slice(0, 500) ?? null,
    logBytes,
  };
  await execute(tx, 'UPDATE app_run_attempts SET ? WHERE run_id = ? AND attempt = ?', [row, id, attempt]);
}

export async function noteLog(
  tx: Transaction,
  { id, attempt }: Pick<Run, 'id' | 'attempt'>,
  objectKey: string,
): Promise<void> {
  await execute(tx, 'UPDATE app_run_attempts SET log_key = ? WHERE run_id = ? AND attempt = ?', [
    objectKey,
    id,
    attempt,
  ]);
}
