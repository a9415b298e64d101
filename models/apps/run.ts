import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import type { Database } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { noteEvent } from '../webhooks/events.ts';
import type { AppComponent } from './manifest.ts';
import type { PlaceOfRuns } from './placeOfRuns.ts';

export type RunStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'timed_out';

/** The cause of a run. */
export type RunTrigger = 'request' | 'agent' | 'webhook' | 'replay' | 'schedule' | 'preview';

/** The component as it was when the run was asked for. */
export type RunSpec = Omit<AppComponent, 'name' | 'isDefault'> & {
  place: PlaceOfRuns;
  /** The port of a web component. */
  port?: number;
  /** The app's version when the run was asked for. The run uses its files. */
  versionId?: string;
};

export interface Run {
  id: string;
  appId: string;
  itemId: string;
  spaceId: string;
  component: string;
  spec: RunSpec;
  triggerKind: RunTrigger;
  /** The delivery that is its input. */
  deliveryId: string | null;
  userId: string;
  /** The API key that asked, and its scopes. Null for a person who is signed in. */
  apiKeyId: string | null;
  scopes: string[] | null;
  status: RunStatus;
  /** The number of starts. 0 while it waits for the first. */
  attempt: number;
  /** True if the process of this attempt is known to have begun. */
  isStarted: boolean;
  retryAt: Date | null;
  /** True if it waits for other runs of its space to end, else null. */
  waitsForSpace: true | null;
  exitCode: number | null;
  endSignal: string | null;
  errorCode: string | null;
  errorDetail: string | null;
  /** The beginning and the end of the last attempt's output. */
  output: string | null;
  cancelRequestedAt: Date | null;
  createdAt: Date;
  startedAt: Date | null;
  endedAt: Date | null;
}

const columns = `id, app_id, item_id, space_id, component, spec, trigger_kind, delivery_id, user_id, api_key_id,
  scopes, status, attempt, is_started, retry_at, waits_for_space, exit_code, end_signal, error_code, error_detail,
  output, cancel_requested_at, created_at, started_at, ended_at`;

function runOf(row: object): Run {
  const { spec, scopes, isStarted, waitsForSpace, ...rest } = row as Omit<
    Run,
    'spec' | 'scopes' | 'isStarted' | 'waitsForSpace'
  > & {
    spec: string;
    scopes: string | null;
    isStarted: number;
    waitsForSpace: number | null;
  };
  return {
    ...rest,
    spec: JSON.parse(spec) as RunSpec,
    scopes: scopes === null ? null : (JSON.parse(scopes) as string[]),
    isStarted: isStarted === 1,
    waitsForSpace: waitsForSpace === 1 ? true : null,
  };
}

export function isActive({ status }: Pick<Run, 'status'>): boolean {
  return status === 'queued' || status === 'running';
}

/** The id of the current attempt's process. A process with this id is started only once. */
export function processIdOf({ id, attempt }: Pick<Run, 'id' | 'attempt'>): string {
  return `${id}-${attempt}`;
}

export async function findRun({ pool }: Pick<Database, 'pool'>, id: string): Promise<Run | undefined> {
  const [row] = await select(pool, `SELECT ${columns} FROM app_runs WHERE id = ?`, [id]);
  return row && runOf(row);
}

export async function runsOf({ pool }: Pick<Database, 'pool'>, ids: readonly string[]): Promise<Run[]> {
  if (ids.length === 0) return [];
  const rows = await select(pool, `SELECT ${columns} FROM app_runs WHERE id IN (?)`, [ids]);
  return rows.map(runOf);
}

/** Throws 404. */
export async function getRun(database: Pick<Database, 'pool'>, id: string): Promise<Run> {
  const run = await findRun(database, id);
  if (run === undefined) throw notFound('run');
  return run;
}

export async function lockRun(tx: Transaction, id: string): Promise<Run | undefined> {
  const [row] = await select<object>(tx, `SELECT ${columns} FROM app_runs WHERE id = ? FOR UPDATE`, [id]);
  return row && runOf(row);
}

/** The earlier run with the same cause. */
export async function runOfTrigger(tx: Transaction, appId: string, triggerKey: string): Promise<Run | undefined> {
  const sql = `SELECT ${columns} FROM app_runs WHERE app_id = ? AND trigger_key = ?`;
  const [row] = await select<object>(tx, sql, [appId, triggerKey]);
  return row && runOf(row);
}

/** Lists an app's runs, newest first. */
export async function listRuns(database: Pick<Database, 'pool'>, appId: string, page: PageRequest): Promise<Page<Run>> {
  const sql = `SELECT ${columns} FROM app_runs WHERE app_id = ?`;
  return readPage(database, page, { sql, values: [appId], by: 'id', order: 'desc', read: runOf });
}

type Changeable = Omit<
  Run,
  | ('id' | 'appId' | 'itemId' | 'spaceId' | 'component' | 'spec' | 'triggerKind' | 'deliveryId')
  | ('userId' | 'apiKeyId' | 'scopes' | 'createdAt')
>;

/** Changes a locked run, both its row and this object. */
export async function changeRun(tx: Transaction, run: Run, changes: Partial<Changeable>): Promise<void> {
  Object.assign(run, changes);
  const row = { ...changes, ...(changes.status !== undefined && { active: isActive(run) ? 1 : null }) };
  await execute(tx, 'UPDATE app_runs SET ? WHERE id = ?', [row, run.id]);
  if (changes.status === undefined || isActive(run)) return;
  const { id, itemId: appId, spaceId, component, status } = run;
  const data = { runId: id, appId, spaceId, component, status, exitCode: run.exitCode, errorCode: run.errorCode };
  await noteEvent(tx, { id: `run.ended:${id}`, type: 'run.ended', spaceId, data });
  if (run.triggerKind !== 'preview') return;
  // Another program may listen on its port from now on.
  const sql = 'UPDATE port_links SET revoked_at = ? WHERE run_id = ? AND revoked_at IS NULL';
  await execute(tx, sql, [new Date(), run.id]);
}
