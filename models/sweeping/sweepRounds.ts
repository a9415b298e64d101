import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** The row after which a sweep continues. */
export interface SweepPosition {
  id: string;
  since: Date;
}

/** The outcome of one round for one sweep. */
export interface SweptRound {
  name: string;
  /** Whether the sweep reached the end of its work. */
  isThrough: boolean;
  positions: ReadonlyMap<string, SweepPosition>;
}

type Pool = Pick<Database, 'pool'>;

/** Where each sweep continues, by sweep name and list name. Sweeps that start at the beginning have no entry. */
export async function sweepPositions({ pool }: Pool, names: readonly string[]) {
  const sql = 'SELECT name, positions FROM sweep_rounds WHERE name IN (?) AND positions IS NOT NULL';
  const rows = await select(pool, sql, [names]);
  return new Map(rows.map(({ name, positions }) => [String(name), readPositions(String(positions))]));
}

function readPositions(json: string): Map<string, SweepPosition> {
  const lists = JSON.parse(json) as [string, { id: string; since: string }][];
  return new Map(lists.map(([list, { id, since }]) => [list, { id, since: new Date(since) }]));
}

/** Records when sweeps reached their end, and where the others continue. */
export async function noteRound({ pool }: Pool, rounds: readonly SweptRound[]): Promise<void> {
  const now = new Date();
  const rows = rounds.map(({ name, isThrough, positions }) => [
    name,
    now,
    isThrough ? now : null,
    positions.size === 0 ? null : JSON.stringify([...positions]),
  ]);
  const sql = `INSERT INTO sweep_rounds (name, first_at, through_at, positions) VALUES ?
      ON DUPLICATE KEY UPDATE through_at = COALESCE(VALUES(through_at), through_at), positions = VALUES(positions)`;
  await execute(pool, sql, [rows]);
}

/** How many seconds ago each sweep last reached its end or, if it never has, first began. */
export async function sweepAges({ pool }: Pool, names: readonly string[]): Promise<Map<string, number>> {
  const sql = 'SELECT name, COALESCE(through_at, first_at) AS at FROM sweep_rounds WHERE name IN (?)';
  const rows = await select(pool, sql, [names]);
  return new Map(
    rows.map(({ name, at }) => [String(name), Math.max(0, (Date.now() - (at as Date).getTime()) / 1_000)]),
  );
}
