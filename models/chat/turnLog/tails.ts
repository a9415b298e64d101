import type { Transaction } from 'sequelize';
import type { Database } from '../../database/database.ts';
import { select } from '../../database/sql.ts';
import type { UiChunk } from './chunks.ts';
import { decodeLines } from './entry.ts';
import type { SegmentRow } from './turnLog.ts';

/** The state of a turn's log. It tells a reader whether it has all chunks. */
export interface LogState {
  /** The next number; a lower bound for a log that is being written. */
  nextSeq: number;
  /** The turn has ended, or waits for its client's tool results: the current response is complete. */
  rests: boolean;
}

/** The log after a position, at one moment. */
export interface Tail {
  state: LogState;
  segments: SegmentRow[];
}

export interface Tails {
  /** Turns that no longer exist are missing. */
  turns: Map<string, Tail>;
  /** There is more: a tail that ends before its `nextSeq` continues. */
  cut: boolean;
}

/** MariaDB turns a column that is NULL in one half of a UNION into a decimal, which the driver returns as text. */
type Numeric = number | string | null;

interface TailRow {
  turnId: string;
  nextSeq: Numeric;
  terminal: Numeric;
  status: string | null;
  firstSeq: Numeric;
  lastSeq: Numeric;
  lines: string | null;
}

/**
 * Columns of the log's state for readers. A turn's own `next_seq` dates from its last change of state: it is exact for
 * a turn that rests, and behind the log while a writer streams.
 */
const statesSql = 'SELECT id AS turnId, next_seq, terminal, status';
const segmentsAtOnce = 200;

/** The last number of a log. It is stable if the caller holds the turn's lock. */
const lastSeqWhere = (turnId: string) =>
  `SELECT last_seq FROM turn_segments WHERE turn_id = ${turnId} ORDER BY first_seq DESC LIMIT 1`;
export const lastSeqSql = lastSeqWhere('?');
/** The same query as a subquery of a statement about turns. */
export const lastSeqOfTurn = lastSeqWhere('turns.id');

/** The next number of the log of a turn that `tx` has locked. */
export async function nextSeqOf(tx: Transaction, turnId: string): Promise<number> {
  const [last] = await select<{ lastSeq: number }>(tx, lastSeqSql, [turnId]);
  return (last?.lastSeq ?? 0) + 1;
}

/** The last number of each turn's log. For ended turns it is in their rows, since their logs may be purged. */
export async function readLastSeqs(
  database: Pick<Database, 'pool'>,
  turns: readonly { id: string; isTerminal: boolean; nextSeq: number }[],
): Promise<(turnId: string) => number> {
  const last = new Map(turns.map(({ id, nextSeq }) => [id, nextSeq - 1]));
  const going = turns.filter(({ isTerminal }) => !isTerminal).map(({ id }) => id);
  if (going.length > 0) {
    const rows = await select(database.pool, `SELECT id, (${lastSeqOfTurn}) AS lastSeq FROM turns WHERE id IN (?)`, [
      going,
    ]);
    for (const { id, lastSeq } of rows) if (lastSeq !== null) last.set(id as string, lastSeq as number);
  }
  return (turnId) => last.get(turnId) ?? 0;
}

export async function readState(database: Database, turnId: string): Promise<LogState | undefined> {
  const [row] = await select<TailRow>(database.pool, `${statesSql} FROM turns WHERE id = ?`, [turnId]);
  return row && stateOf(row);
}

/**
 * The segments that begin after each log's position. One statement reads states and segments at the same moment: if a
 * state says that the turn rests, all its chunks are there.
 */
export async function readTails(database: Database, positions: ReadonlyMap<string, number>): Promise<Tails> {
  const rows = await select<TailRow>(
    database.pool,
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
    const tail = turns.get(turnId);
    if (tail === undefined) continue;
    tail.segments.push({ firstSeq: Number(firstSeq), lastSeq: Number(lastSeq), lines });
    tail.state.nextSeq = Math.max(tail.state.nextSeq, Number(lastSeq) + 1);
  }
  return { turns, cut: segments === segmentsAtOnce };
}

function stateOf({ nextSeq, terminal, status }: TailRow): LogState {
  return { nextSeq: Number(nextSeq), rests: Number(terminal) === 1 || status === 'waiting' };
}

/** How much of a log is delivered at a time: a long log goes out at its reader's pace. */
const charactersAtOnce = 128 * 1024;

/** The chunks after `position`, in portions. A chunk is never divided, however large it is. */
export function* portionsOf(segments: SegmentRow[], position: number): Generator<string[]> {
  let portion: string[] = [];
  let characters = 0;
  for (const { firstSeq, lines } of segments) {
    for (const line of lines.split('\n').slice(Math.max(0, position + 1 - firstSeq))) {
      portion.push(line);
      characters += line.length;
      if (characters < charactersAtOnce) continue;
      yield portion;
      portion = [];
      characters = 0;
    }
  }
  if (portion.length > 0) yield portion;
}

/** The chunks after `position`, up to the first gap. */
export function linesAfter(segments: SegmentRow[], position: number): string[] {
  const found: string[] = [];
  for (const { firstSeq, lastSeq, lines } of segments) {
    const next = position + 1 + found.length;
    if (lastSeq < next) continue;
    if (firstSeq > next) break;
    for (const line of lines.split('\n').slice(next - firstSeq)) found.push(line);
  }
  return found;
}

/** A turn's log from the beginning of one of its steps. */
export async function saidSinceStep(tx: Transaction, turnId: string, step: number): Promise<UiChunk[]> {
  const segments = await select<{ chunks: string }>(
    tx,
    `SELECT s.chunks FROM model_calls c JOIN turn_segments s ON s.turn_id = c.turn_id AND s.last_seq >= c.first_seq
      WHERE c.turn_id = ? AND c.step = ?`,
    [turnId, step],
  );
  return segments.flatMap(({ chunks }) => decodeLines(chunks));
}
