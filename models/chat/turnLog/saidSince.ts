import type { Transaction } from 'sequelize';
import { select } from '../../database/sql.ts';
import type { UiChunk } from './chunks.ts';
import { decodeLines } from './entry.ts';

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
