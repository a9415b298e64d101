import { QueryTypes } from 'sequelize';
import type { Database } from '../database.ts';

/** What is being removed for good: one thread, or all threads of a space. */
export type PurgeScope = { threadId: string } | { spaceId: string };

const turnsPerBatch = 50;

const tablesOfTurn = ['turn_segments', 'turn_contexts', 'model_calls', 'tool_calls', 'turn_receipts'];
const tablesOfThread = ['messages', 'thread_summaries', 'thread_aliases'];

/** Removes some of the scope's rows; true when there may be more. Children go before parents, so a crash leaves no orphan. */
export async function purgeBatch(database: Database, scope: PurgeScope): Promise<boolean> {
  const threadId = 'threadId' in scope ? scope.threadId : await anyThreadOf(database, scope.spaceId);
  if (threadId === undefined) return false;
  const turns = await database.sequelize.query<{ id: string }>(
    'SELECT id FROM turns WHERE thread_id = ? ORDER BY ordinal LIMIT ?',
    { replacements: [threadId, turnsPerBatch], type: QueryTypes.SELECT },
  );
  if (turns.length > 0) {
    const ids = turns.map(({ id }) => id);
    for (const table of tablesOfTurn) await remove(database, `DELETE FROM ${table} WHERE turn_id IN (?)`, ids);
    await remove(database, 'DELETE FROM turns WHERE id IN (?)', ids);
    return true;
  }
  for (const table of tablesOfThread) await remove(database, `DELETE FROM ${table} WHERE thread_id = ?`, threadId);
  await remove(database, 'DELETE FROM threads WHERE id = ?', threadId);
  return 'spaceId' in scope;
}

/** Drops the logs of turns that ended before `before`, a batch at a time, and returns how many turns that were. */
export async function purgeTurnLogs(database: Database, before: Date): Promise<number> {
  let purged = 0;
  for (;;) {
    const turns = await database.sequelize.query<{ id: string }>(
      'SELECT id FROM turns WHERE ended_at < ? AND log_purged_at IS NULL ORDER BY ended_at LIMIT ?',
      { replacements: [before, turnsPerBatch], type: QueryTypes.SELECT },
    );
    if (turns.length === 0) return purged;
    const ids = turns.map(({ id }) => id);
    // Marked first: a reader that finds the mark rebuilds the answer, and never sees half a log.
    await remove(database, 'UPDATE turns SET log_purged_at = UTC_TIMESTAMP(3) WHERE id IN (?)', ids);
    await remove(database, 'DELETE FROM turn_segments WHERE turn_id IN (?)', ids);
    purged += turns.length;
  }
}

async function anyThreadOf(database: Database, spaceId: string): Promise<string | undefined> {
  const [thread] = await database.sequelize.query<{ id: string }>('SELECT id FROM threads WHERE space_id = ? LIMIT 1', {
    replacements: [spaceId],
    type: QueryTypes.SELECT,
  });
  return thread?.id;
}

async function remove(database: Database, sql: string, value: string | string[]): Promise<void> {
  await database.sequelize.query(sql, { replacements: [value] });
}
