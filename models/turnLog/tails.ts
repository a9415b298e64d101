import type { RowDataPacket } from 'mysql2/promise';
import type { Database } from '../database.ts';
import type { SegmentRow } from './turnLog.ts';

/** Where a turn's log stands: what a reader needs to know whether it has all of it. */
export interface LogState {
  nextSeq: number;
  /** The turn has ended, or waits for its client's tool results: this response says no more. */
  rests: boolean;
}

/** What a log says after a position, as of one moment. */
export interface Tail {
  state: LogState;
  segments: SegmentRow[];
}

export interface Tails {
  /** A turn that is not among them does not exist any more. */
  turns: Map<string, Tail>;
  /** There is more: a tail that ends before its `nextSeq` goes on. */
  cut: boolean;
}

/** A column that is NULL in one half of a UNION is a decimal to MariaDB, which the driver gives as text. */
type Numeric = number | string | null;

interface TailRow extends RowDataPacket {
  turnId: string;
  nextSeq: Numeric;
  terminal: Numeric;
  status: string | null;
  firstSeq: Numeric;
  lastSeq: Numeric;
  lines: string | null;
}

/** The one place that reads the state of logs for their readers. */
const statesSql = 'SELECT id AS turnId, next_seq AS nextSeq, terminal, status';
const segmentsAtOnce = 200;

export async function readState(database: Database, turnId: string): Promise<LogState | undefined> {
  const [rows] = await database.pool.query<TailRow[]>(`${statesSql} FROM turns WHERE id = ?`, [turnId]);
  return rows[0] && stateOf(rows[0]);
}

/**
 * * What many logs say after the position of each: those segments that begin behind it. One statement, so states and
 * segments are of the same moment: when a state says the end, all the chunks are there.
 */
export async function readTails(database: Database, positions: ReadonlyMap<string, number>): Promise<Tails> {
  const [rows] = await database.pool.query<TailRow[]>(
    `${statesSql}, NULL AS firstSeq, NULL AS lastSeq, NULL AS \`lines\` FROM turns WHERE id IN (?)
      UNION ALL
      (SELECT turn_id, NULL, NULL, NULL, first_seq, last_seq, chunks FROM turn_segments
        WHERE ${Array.from(positions, () => '(turn_id = ? AND first_seq > ?)').join(' OR ')}
        ORDER BY turn_id, first_seq LIMIT ?)`,
    [[...positions.keys()], ...[...positions].flat(), segmentsAtOnce],
  );
  const turns = new Map<string, Tail>();
  let segments = 0;
  for (const row of rows) {
    if (row.nextSeq !== null) turns.set(row.turnId, { state: stateOf(row), segments: [] });
  }
  for (const { turnId, firstSeq, lastSeq, lines } of rows) {
    if (lines === null) continue;
    segments++;
    turns.get(turnId)?.segments.push({ firstSeq: Number(firstSeq), lastSeq: Number(lastSeq), lines });
  }
  return { turns, cut: segments === segmentsAtOnce };
}

function stateOf({ nextSeq, terminal, status }: TailRow): LogState {
  return { nextSeq: Number(nextSeq), rests: Number(terminal) === 1 || status === 'waiting' };
}
