import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** What to purge: one thread, or all threads of a space. */
export type PurgeScope = { threadId: string } | { spaceId: string };

const turnsPerBatch = 50;
const textsPerBatch = 20;

/**
 * Purges threads with everything that belongs to them and to their turns. Children are deleted before parents, so a
 * crash leaves no orphans.
 */
export async function purgeThreads(
  database: Database,
  scope: PurgeScope,
  tables: { ofTurn: readonly string[]; ofThread: readonly string[] },
  onBatch: () => void,
): Promise<void> {
  if ('threadId' in scope) return purgeThread(database, scope.threadId, tables, onBatch);
  for (;;) {
    const threadId = await anyThreadOf(database, scope.spaceId);
    if (threadId === undefined) return;
    await purgeThread(database, threadId, tables, onBatch);
  }
}

async function purgeThread(
  database: Database,
  threadId: string,
  { ofTurn, ofThread }: { ofTurn: readonly string[]; ofThread: readonly string[] },
  onBatch: () => void,
): Promise<void> {
  // A deleted thread's title is no longer indexed.
  await remove(
    database,
    'UPDATE threads SET deleted_at = UTC_TIMESTAMP(3) WHERE id = ? AND deleted_at IS NULL',
    threadId,
  );
  for (;;) {
    const sql = 'SELECT id FROM turns WHERE thread_id = ? ORDER BY ordinal LIMIT ?';
    const turns = await select<{ id: string }>(database.pool, sql, [threadId, turnsPerBatch]);
    if (turns.length === 0) break;
    const ids = turns.map(({ id }) => id);
    for (const table of ofTurn) await remove(database, `DELETE FROM ${table} WHERE turn_id IN (?)`, ids);
    await remove(database, 'DELETE FROM turns WHERE id IN (?)', ids);
    onBatch();
  }
  for (const table of ofThread) await remove(database, `DELETE FROM ${table} WHERE thread_id = ?`, threadId);
  // The messages are gone, so none of them is indexed from here on.
  await purgeTexts(database, threadId, onBatch);
  await remove(database, 'DELETE FROM threads WHERE id = ?', threadId);
  onBatch();
}

async function purgeTexts(database: Database, threadId: string, onBatch: () => void): Promise<void> {
  for (;;) {
    const sql = 'SELECT number FROM thread_texts WHERE thread_id = ? LIMIT ?';
    const texts = await select<{ number: number }>(database.pool, sql, [threadId, textsPerBatch]);
    if (texts.length === 0) return;
    const numbers = texts.map(({ number }) => number);
    await remove(database, 'DELETE FROM thread_words WHERE text_number IN (?)', numbers);
    await remove(database, 'DELETE FROM thread_texts WHERE number IN (?)', numbers);
    onBatch();
  }
}

/** Deletes the logs of turns that ended before `before`, a batch at a time, and returns the number of turns. */
export async function purgeTurnLogs(
  database: Database,
  before: Date,
  onBatch: () => void = () => undefined,
): Promise<number> {
  let purged = 0;
  for (;;) {
    const sql = 'SELECT id FROM turns WHERE ended_at < ? AND log_purged_at IS NULL ORDER BY ended_at LIMIT ?';
    const turns = await select<{ id: string }>(database.pool, sql, [before, turnsPerBatch]);
    if (turns.length === 0) return purged;
    const ids = turns.map(({ id }) => id);
    // The mark comes first: a reader that finds it rebuilds the answer, so no reader sees half a log.
    await remove(database, 'UPDATE turns SET log_purged_at = UTC_TIMESTAMP(3) WHERE id IN (?)', ids);
    await remove(database, 'DELETE FROM turn_segments WHERE turn_id IN (?)', ids);
    purged += turns.length;
    onBatch();
  }
}

async function anyThreadOf(database: Database, spaceId: string): Promise<string | undefined> {
  const sql = 'SELECT id FROM threads WHERE space_id = ? LIMIT 1';
  const [thread] = await select<{ id: string }>(database.pool, sql, [spaceId]);
  return thread?.id;
}

async function remove(database: Database, sql: string, value: string | string[] | number[]): Promise<void> {
  await execute(database.pool, sql, [value]);
}
