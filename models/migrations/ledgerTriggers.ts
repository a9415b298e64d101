import type { ResultSetHeader, RowDataPacket } from 'mysql2/promise';
import { newId } from '../../base/ids.ts';
import type { Database } from '../database/database.ts';

/**
 * What is in the ledger is neither changed nor deleted: the database itself refuses it. Where it did not let us make
 * the triggers, no statement of ours does it, but nothing keeps a hand from doing it.
 */
const tables = ['ledger_transactions', 'ledger_entries'] as const;
const changes = ['UPDATE', 'DELETE'] as const;
const triggersNotAllowed = 1419; // the binary log is on, and the account may not make triggers
const refused = 1644; // by the trigger

/** What an operator does about triggers that are missing. */
export const triggerAdvice =
  'set log_bin_trust_function_creators=1 on the server, or give the account of the migrations SUPER, then run "npm run -s atrium -- migrate"';

/** Makes those that are missing, where the server lets us by now. For the account that may change tables. */
export async function makeMissingTriggers({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const [rows] = await pool.query<RowDataPacket[]>(
    'SELECT trigger_name AS name FROM information_schema.triggers WHERE trigger_schema = DATABASE()',
  );
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
 * What the database would let through of what it should refuse, as in `UPDATE of ledger_entries`. An account that only
 * reads and writes rows is not shown triggers: so it is tried, on rows that are rolled back.
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
    // A connection whose transaction could not be undone is no longer to be used.
    await connection.rollback().then(
      () => connection.release(),
      () => connection.destroy(),
    );
  }
}

function errorNumberOf(error: unknown): number | undefined {
  return (error as { errno?: number }).errno;
}
