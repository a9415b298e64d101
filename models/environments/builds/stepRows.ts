import type { Transaction } from 'sequelize';
import { notFound } from '../../../base/errors.ts';
import type { Database } from '../../database/database.ts';
import { execute, type Runner, select } from '../../database/sql.ts';
import type { CopiedFiles, Plan } from '../steps.ts';

/** `ran`: it has succeeded, and is not saved yet. `kept`: an earlier build has done it. */
export type StepStatus = 'waiting' | 'running' | 'ran' | 'done' | 'kept' | 'failed';

/** A row of `environment_steps`: a step that changes files, in one build. */
export interface StepRow {
  versionId: string;
  /** Its place among all steps of the version, from 1. 0 is the base. */
  number: number;
  spaceId: string;
  /** A digest of everything that its result depends on. */
  digest: string;
  status: StepStatus;
  /** Which start of its computer it runs in. */
  generation: number | null;
  exitCode: number | null;
  startedAt: Date | null;
  endedAt: Date | null;
  /** The length of its output. */
  logBytes: number | null;
}

const columns = `version_id, number, space_id, digest, status, generation, exit_code, started_at, ended_at, log_bytes`;

/** The steps of these versions, in order. */
export async function stepRows(on: Runner, versionIds: readonly string[]): Promise<StepRow[]> {
  if (versionIds.length === 0) return [];
  const sql = `SELECT ${columns} FROM environment_steps WHERE version_id IN (?) ORDER BY version_id, number`;
  const rows = await select<StepRow>(on, sql, [versionIds]);
  return rows.map((row) => ({ ...row, logBytes: row.logBytes === null ? null : Number(row.logBytes) }));
}

/** Whether it is not a step of the environment, but makes what the first of these begins with. */
export const isBase = ({ number }: Pick<StepRow, 'number'>) => number === 0;

/** The steps that people see. */
export async function ownSteps(on: Runner, versionIds: readonly string[]): Promise<StepRow[]> {
  return (await stepRows(on, versionIds)).filter((step) => !isBase(step));
}

/** What a step does, and the files that it copies. Throws 404 once its build has ended. */
export async function planOfStep(
  on: Runner,
  { versionId, number }: Pick<StepRow, 'versionId' | 'number'>,
): Promise<{ plan: Plan; files: CopiedFiles }> {
  const sql = 'SELECT plan, files FROM environment_steps WHERE version_id = ? AND number = ?';
  const [row] = await select<{ plan: string; files: string | null }>(on, sql, [versionId, number]);
  if (row === undefined || row.plan === '') throw notFound('step');
  return { plan: JSON.parse(row.plan) as Plan, files: JSON.parse(row.files ?? '{}') as CopiedFiles };
}

/** Whether a step runs now, as its row says. */
export async function isRunning(
  { pool }: Pick<Database, 'pool'>,
  { versionId, number }: Pick<StepRow, 'versionId' | 'number'>,
): Promise<boolean> {
  const sql = "SELECT number FROM environment_steps WHERE version_id = ? AND number = ? AND status = 'running'";
  return (await select(pool, sql, [versionId, number])).length > 0;
}

/** A build that has ended needs what its steps would do no more. Its digests say what they did. */
export async function forgetPlans(tx: Transaction, versionId: string): Promise<void> {
  await execute(tx, "UPDATE environment_steps SET plan = '', files = NULL WHERE version_id = ?", [versionId]);
}

/** The process that does a step, so that a step is run once. */
export function processIdOf({ versionId, number }: Pick<StepRow, 'versionId' | 'number'>): string {
  return `${versionId}-${number}`;
}

export async function changeStep(
  tx: Transaction,
  { versionId, number }: Pick<StepRow, 'versionId' | 'number'>,
  changes: Partial<StepRow> & { sealedLog?: Buffer | null; sealedTail?: Buffer | null },
): Promise<void> {
  const sql = 'UPDATE environment_steps SET ? WHERE version_id = ? AND number = ?';
  await execute(tx, sql, [changes, versionId, number]);
}

/** The sealed log of a step, or the sealed end of it. */
export async function sealedOutput(
  on: Runner,
  { versionId, number }: Pick<StepRow, 'versionId' | 'number'>,
  part: 'log' | 'tail',
): Promise<Buffer | undefined> {
  const sql = `SELECT sealed_${part} AS sealed FROM environment_steps WHERE version_id = ? AND number = ?`;
  const [row] = await select<{ sealed: Buffer | null }>(on, sql, [versionId, number]);
  return row?.sealed ?? undefined;
}
