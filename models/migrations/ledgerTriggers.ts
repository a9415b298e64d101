import type { ResultSetHeader } from 'mysql2/promise';
import { newId } from '../../base/ids.ts';
import { errorNumberOf } from '../database/collisions.ts';
import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/**
 * Ledger rows are never changed or deleted: the database itself refuses it. If the server did not let us make the
 * triggers, our own statements still do neither, but nothing stops a change by hand.
 */
const tables = ['ledger_transactions', 'ledger_entries'] as const;
const changes = ['UPDATE', 'DELETE'] as const;
const triggersNotAllowed = 1419; // the binary log is on, and the account may not make triggers
const refused = 1644; // by the trigger

/** What an operator does about missing triggers. */
export const triggerAdvice =
  'set log_bin_trust_function_creators=1 on the server, or give the account of the migrations SUPER, then run "npm run -s atrium -- migrate"';

/** Makes missing triggers, if the server allows it by now. Needs the account that may change tables. */
export async function makeMissingTriggers({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const sql = 'SELECT trigger_name AS name FROM information_schema.triggers WHERE trigger_schema = DATABASE()';
  const rows = await select(pool, sql);
  const present = new Set(rows.map(({ name }) => name as string));
  for (const table of tables) {
    for (const change of changes) {
      const trigger = `${table}_no_${change.toLowerCase()}`;
      if (present.has(trigger)) continue;
      try {
        await pool.query(
          `CREATE TRIGGER ${trigger} BEFORE ${change} ON ${table} FOR EACH ROW
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'The ledger is append-only'`,
        );
      } catch (error) {
        if (errorNumberOf(error) !== triggersNotAllowed) throw error;
      }
    }
  }
}

/**
 * The changes that the database should refuse but allows, such as `UPDATE of ledger_entries`. An account that only
 * reads and writes rows cannot see triggers, so this tries each change on rows that are rolled back.
 */
export async function unguardedChanges({ pool }: Pick<Database, 'pool'>): Promise<string[]> {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    const id = newId('ledgerTransaction');
    const row = { id, source_id: `probe:${id}`, kind: 'probe', space_id: id, created_at: new Date() };
    await connection.query('INSERT INTO ledger_transactions SET ?', [row]);
    const entry = { transaction_id: id, position: 0, space_id: id, account: 'probe', amount: 0, balance_after: 0 };
    await connection.query('INSERT INTO ledger_entries SET ?', [entry]);
    const unguarded: string[] = [];
    for (const [table, key] of [
      ['ledger_transactions', 'id'],
      ['ledger_entries', 'transaction_id'],
    ] as const) {
      for (const [change, statement] of [
        ['UPDATE', `UPDATE ${table} SET space_id = '' WHERE ${key} = ?`],
        ['DELETE', `DELETE FROM ${table} WHERE ${key} = ?`],
      ] as const) {
        try {
          await connection.query<ResultSetHeader>(statement, [id]);
          unguarded.push(`${change} of ${table}`);
        } catch (error) {
          if (errorNumberOf(error) !== refused) throw error;
        }
      }
    }
    return unguarded;
  } finally {
    // A connection whose rollback failed must not be used again.
    await connection.rollback().then(
      () => connection.release(),
      () => connection.destroy(),
    );
  }
}
