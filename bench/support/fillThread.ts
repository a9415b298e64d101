import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';

const turnsPerStatement = 500;
const said = 'A sentence or two, as people write them to each other in the course of a day of work together.';

/** Adds ended turns after a thread's first one, until it has this many messages. Returns its number of turns. */
export async function fillThread(database: Database, threadId: string, messages: number): Promise<number> {
  const turns = Math.max(1, Math.ceil(messages / 2));
  for (let from = 2; from <= turns; from += turnsPerStatement) {
    const ordinals = Array.from({ length: Math.min(turnsPerStatement, turns - from + 1) }, (_, index) => from + index);
    const rows = ordinals.map((ordinal) => ({
      ordinal,
      turnId: newId('turn'),
      asked: newId('message'),
      told: newId('message'),
    }));
    await database.pool.query(
      `INSERT INTO turns (id, thread_id, space_id, user_id, ordinal, status, terminal, user_message_id, assistant_message_id,
          mode, model_id, notification_priority, finish_reason, created_at, started_at, ended_at)
        SELECT n.id, t.thread_id, t.space_id, t.user_id, n.ordinal, 'completed', 1, n.asked, n.told, t.mode, t.model_id,
               t.notification_priority, 'stop', t.created_at, t.created_at, t.created_at
          FROM turns t JOIN (${rows.map(() => 'SELECT ? AS id, ? AS ordinal, ? AS asked, ? AS told').join(' UNION ALL ')}) n
         WHERE t.thread_id = ? AND t.ordinal = 1`,
      [...rows.flatMap(({ turnId, ordinal, asked, told }) => [turnId, ordinal, asked, told]), threadId],
    );
    const now = new Date();
    await database.pool.query(
      'INSERT INTO messages (thread_id, turn_ordinal, position, id, turn_id, role, parts, created_at) VALUES ?',
      [
        rows.flatMap(({ ordinal, turnId, asked, told }) => [
          [threadId, ordinal, 0, asked, turnId, 'user', parts(`${ordinal}. ${said}`), now],
          [threadId, ordinal, 1, told, turnId, 'assistant', parts(`${said} ${said}`), now],
        ]),
      ],
    );
  }
  await database.pool.query('UPDATE threads SET next_turn_ordinal = ? WHERE id = ?', [turns + 1, threadId]);
  return turns;
}

function parts(text: string): string {
  return JSON.stringify([{ type: 'text', text, state: 'done' }]);
}
