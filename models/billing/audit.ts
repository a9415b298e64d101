import type { PoolConnection } from 'mysql2/promise';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { keptDays } from './caps.ts';
import { accounts, sources, uses } from './ledger.ts';

export interface Difference {
  check: string;
  subject: string;
  detail: string;
}

export interface Audit {
  spaces: number;
  transactions: number;
  entries: number;
  differences: Difference[];
  /**
   * Statements of the provider that we cannot explain. A person should look at them; they are no inconsistency in the
   * books.
   */
  findings: { subjectId: string; finding: string }[];
  unsettledEvents: number;
}

const sign = `CASE WHEN account IN (${sources.map((account) => `'${account}'`).join(', ')}) THEN -1 ELSE 1 END`;
const most = 1_000;
const checkedDays = `UTC_DATE() - INTERVAL ${keptDays - 2} DAY`;

/** Each query finds nothing if the books are right. Otherwise it returns `subject` and what is wrong with it. */
const checks: Record<string, string> = {
  'each transaction sums to zero over two entries or more': `
    SELECT transaction_id AS subject, CONCAT(COUNT(*), ' entries, sum ', SUM(amount)) AS detail
      FROM ledger_entries GROUP BY transaction_id HAVING SUM(amount) <> 0 OR COUNT(*) < 2`,
  'each transaction has its entries': `
    SELECT t.id AS subject, 'has none' AS detail FROM ledger_transactions t
      LEFT JOIN ledger_entries e ON e.transaction_id = t.id WHERE e.transaction_id IS NULL`,
  'each entry has its transaction': `
    SELECT e.transaction_id AS subject, 'is missing' AS detail FROM ledger_entries e
      LEFT JOIN ledger_transactions t ON t.id = e.transaction_id WHERE t.id IS NULL`,
  ...Object.fromEntries(
    accounts.map((account) => [
      `${account} is the sum of its entries`,
      `SELECT b.space_id AS subject, CONCAT('is ', b.${account}, ', its entries sum to ', COALESCE(e.total, 0)) AS detail
         FROM billing_balances b LEFT JOIN (
           SELECT space_id, SUM(amount * ${sign}) AS total FROM ledger_entries WHERE account = '${account}' GROUP BY space_id
         ) e ON e.space_id = b.space_id WHERE b.${account} <> COALESCE(e.total, 0)`,
    ]),
  ),
  'each entry’s space has balances': `
    SELECT DISTINCT e.space_id AS subject, 'has none' AS detail FROM ledger_entries e
      LEFT JOIN billing_balances b ON b.space_id = e.space_id WHERE b.space_id IS NULL`,
  'both sides are equal, and nothing is negative': `
    SELECT space_id AS subject, 'are not' AS detail FROM billing_balances
     WHERE ${uses.join(' + ')} <> ${sources.join(' + ')}
        OR LEAST(${accounts.join(', ')}) < 0`,
  'available is what is left of the grants': `
    SELECT b.space_id AS subject, CONCAT('is ', b.available, ', the grants have ', COALESCE(g.total, 0)) AS detail
      FROM billing_balances b LEFT JOIN (
        SELECT space_id, SUM(remaining) AS total FROM billing_grants GROUP BY space_id
      ) g ON g.space_id = b.space_id WHERE b.available <> COALESCE(g.total, 0)`,
  'reserved is what open holds hold': `
    SELECT b.space_id AS subject, CONCAT('is ', b.reserved, ', the holds have ', COALESCE(h.total, 0)) AS detail
      FROM billing_balances b LEFT JOIN (
        SELECT space_id, SUM(held) AS total FROM billing_holds WHERE status = 'open' GROUP BY space_id
      ) h ON h.space_id = b.space_id WHERE b.reserved <> COALESCE(h.total, 0)`,
  'a day’s use is what its calls cost or may cost': `
    SELECT CONCAT(u.space_id, ' ', u.day, ' ', u.user_id) AS subject, CONCAT('is ', u.micro, ', the calls come to ', COALESCE(h.total, 0)) AS detail
      FROM billing_day_use u LEFT JOIN (
        SELECT space_id, day, SUM(IF(status = 'open', amount, cost)) AS total FROM billing_holds
         WHERE day >= ${checkedDays} GROUP BY space_id, day
      ) h ON h.space_id = u.space_id AND h.day = u.day
     WHERE u.day >= ${checkedDays} AND u.user_id = '' AND u.micro <> COALESCE(h.total, 0)`,
  'no space has both a debt and credits': `
    SELECT space_id AS subject, 'has' AS detail FROM billing_balances WHERE debt > 0 AND available > 0`,
  'each paid checkout is credited, and no other': `
    SELECT c.id AS subject, CONCAT('is ', c.status, IF(t.id IS NULL, ', not credited', ', credited')) AS detail
      FROM billing_checkouts c LEFT JOIN ledger_transactions t
        ON t.source_id = COALESCE(CONCAT('checkout:', c.session_id), CONCAT('payment:', c.payment_id))
     WHERE (c.status = 'paid') <> (t.id IS NOT NULL)`,
};

/** A check reads the whole ledger before it answers. */
const silenceMs = 30 * 60_000;

/** Audits the whole ledger as of one moment, while it is in use. */
export async function audit(database: Database): Promise<Audit> {
  const connection = await database.pool.getConnection();
  try {
    return await database.within(connection, silenceMs, () => auditOver(connection));
  } finally {
    connection.release();
  }
}

async function auditOver(connection: PoolConnection): Promise<Audit> {
  const query = <Row>(sql: string) => select<Row>(connection, sql);
  const count = async (table: string) => (await query<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`))[0]?.n ?? 0;
  try {
    await execute(connection, 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ');
    await execute(connection, 'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY');
    const differences: Difference[] = [];
    for (const [check, sql] of Object.entries(checks)) {
      const rows = await query<{ subject: string; detail: string }>(`${sql} LIMIT ${most}`);
      differences.push(...rows.map((row) => ({ check, ...row })));
    }
    return {
      spaces: await count('billing_balances'),
      transactions: await count('ledger_transactions'),
      entries: await count('ledger_entries'),
      differences,
      findings: await query(`SELECT subject_id, finding FROM payment_findings LIMIT ${most}`),
      unsettledEvents: await count("payment_events WHERE status = 'received'"),
    };
  } finally {
    await execute(connection, 'ROLLBACK').catch(() => undefined);
  }
}
