import type { Transaction } from 'sequelize';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';
import { isActive, type Run } from './run.ts';
import { lockUsage } from './usage.ts';

/** The maximum number of running runs of a space. */
interface Limits {
  runsPerSpace: number;
}

/** True if the component has a free slot, and no older queued run of the component takes it. */
export async function hasPlace(tx: Transaction, { appId, component, id, spec }: Run): Promise<boolean> {
  const of = (status: 'running' | 'queued', limit: number) =>
    select<{ id: string }>(
      tx,
      'SELECT id FROM app_runs WHERE app_id = ? AND component = ? AND status = ? ORDER BY id LIMIT ?',
      [appId, component, status, limit],
    );
  const places = spec.concurrency - (await of('running', spec.concurrency)).length;
  return places > 0 && (await of('queued', places)).some((first) => first.id === id);
}

const runningSql = "SELECT id FROM app_runs WHERE space_id = ? AND status = 'running' LIMIT ?";
const waitingIn = 'FROM app_runs FORCE INDEX (app_runs_waiting) WHERE space_id = ? AND waits_for_space = 1';

/**
 * True if the space has a free slot, and the older waiting runs of the space leave it free. The limit keeps one space
 * from taking the capacity of all others.
 */
export async function spaceHasPlace(tx: Transaction, { id, spaceId }: Run, limits: Limits): Promise<boolean> {
  await lockUsage(tx, spaceId);
  const places = limits.runsPerSpace - (await select(tx, runningSql, [spaceId, limits.runsPerSpace])).length;
  if (places <= 0) return false;
  const earlier = await select(tx, `SELECT id ${waitingIn} AND id < ? LIMIT ?`, [spaceId, id, places]);
  return earlier.length < places;
}

/** How many of the runs that wait for their space are told at a time. Each of them tells the next. */
const toldOfSpace = 5;

/**
 * The runs to tell when a run has taken a step. If it has ended, these are the next runs of its component. In any case
 * they are the first runs that wait for their space and have a slot there now: several slots may have become free
 * together, and a run that could take one may have left it.
 */
export async function nextInLine(
  { pool }: Pick<Database, 'pool'>,
  run: Run,
  limits: Limits,
): Promise<{ id: string; spaceId: string }[]> {
  const { appId, component, id, spaceId, spec } = run;
  const ids = async (sql: string, values: unknown[]) => (await select(pool, sql, values)).map((row) => String(row.id));
  const ofComponent = `SELECT id FROM app_runs WHERE app_id = ? AND component = ? AND status = 'queued' ORDER BY id LIMIT ?`;
  const next = new Set(isActive(run) ? [] : await ids(ofComponent, [appId, component, spec.concurrency]));
  const waiting = await ids(`SELECT id ${waitingIn} ORDER BY id LIMIT ?`, [spaceId, toldOfSpace]);
  if (waiting.length > 0) {
    const places = limits.runsPerSpace - (await ids(runningSql, [spaceId, limits.runsPerSpace])).length;
    for (const first of waiting.slice(0, Math.max(0, places))) next.add(first);
  }
  next.delete(id);
  return [...next].map((nextId) => ({ id: nextId, spaceId }));
}
