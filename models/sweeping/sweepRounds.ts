import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';

/** The row after which a sweep goes on. */
export interface SweepPosition {
  id: string;
  since: Date;
}

/** What one round came to for one sweep. */
export interface SweptRound {
  name: string;
  /** Whether it came to the end of its work. */
  isThrough: boolean;
  positions: ReadonlyMap<string, SweepPosition>;
}

type Pool = Pick<Database, 'pool'>;

/** Where each of the sweeps goes on, by the sweep's name and the list's. Those that begin at the beginning have none. */
export async function sweepPositions({ pool }: Pool, names: readonly string[]) {
  const [rows] = await pool.query<RowDataPacket[]>(
    'SELECT name, positions FROM sweep_rounds WHERE name IN (?) AND positions IS NOT NULL',
    [names],
  );
  return new Map(rows.map(({ name, positions }) => [String(name), readPositions(String(positions))]));
}

function readPositions(json: string): Map<string, SweepPosition> {
  const lists = JSON.parse(json) as [string, { id: string; since: string }][];
  return new Map(lists.map(([list, { id, since }]) => [list, { id, since: new Date(since) }]));
}

/** Writes down when sweeps came through, and where those that did not are to go on. */
export async function noteRound({ pool }: Pool, rounds: readonly SweptRound[]): Promise<void> {
  const now = new Date();
  const rows = rounds.map(({ name, isThrough, positions }) => [
    name,
    now,
    isThrough ? now : null,
    positions.size === 0 ? null : JSON.stringify([...positions]),
  ]);
  await pool.query(
    `INSERT INTO sweep_rounds (name, first_at, through_at, positions) VALUES ?
      ON DUPLICATE KEY UPDATE through_at = COALESCE(VALUES(through_at), through_at), positions = VALUES(positions)`,
    [rows],
  );
}

/** How many seconds ago each of the sweeps last came through, or was first begun where it never has. */
export async function sweepAges({ pool }: Pool, names: readonly string[]): Promise<Map<string, number>> {
  const [rows] = await pool.query<RowDataPacket[]>(
    'SELECT name, COALESCE(through_at, first_at) AS at FROM sweep_rounds WHERE name IN (?)',
    [names],
  );
  return new Map(
    rows.map(({ name, at }) => [String(name), Math.max(0, (Date.now() - (at as Date).getTime()) / 1_000)]),
  );
}
