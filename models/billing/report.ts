import type { Database } from '../database/database.ts';
import { behindSql, type Order } from '../database/pages.ts';
import { select } from '../database/sql.ts';
import { type Account, accounts, type Balances, type TransactionKind } from './ledger.ts';

/** A transaction of a space's ledger. Its lines are changes of balances. */
export interface LedgerRecord {
  id: string;
  sourceId: string;
  kind: TransactionKind;
  userId: string | null;
  turnId: string | null;
  detail: string | null;
  createdAt: Date;
  lines: { account: Account; amount: number; balanceAfter: number }[];
}

const nothing = Object.fromEntries(accounts.map((account) => [account, 0])) as Record<Account, number>;

/** A space's present balances. Zeros before its first credit. */
export async function readBalances(database: Database, spaceId: string): Promise<Balances & { lowSince: Date | null }> {
  const sql = `SELECT space_id, ${accounts.join(', ')}, low_since FROM billing_balances WHERE space_id = ?`;
  const rows = await select<Balances & { lowSince: Date | null }>(database.pool, sql, [spaceId]);
  return rows[0] ?? { spaceId, ...nothing, lowSince: null };
}

interface LedgerPage {
  /** Default: newest first. */
  order?: Order;
  limit: number;
  /** The page begins after this transaction, in its order. */
  behind?: string | undefined;
}

export async function readLedger(database: Database, spaceId: string, page: LedgerPage): Promise<LedgerRecord[]> {
  const wanted = await transactionsOf(database, spaceId, page);
  if (wanted.length === 0) return [];
  const sql = `SELECT id, source_id, kind, user_id, turn_id, detail, created_at
       FROM ledger_transactions WHERE id IN (?) ORDER BY id ${page.order === 'asc' ? 'ASC' : 'DESC'}`;
  const heads = await select<LedgerRecord>(database.pool, sql, [wanted]);
  const lines = await select<LedgerRecord['lines'][number] & { id: string }>(
    database.pool,
    `SELECT transaction_id AS id, account, amount, balance_after FROM ledger_entries
      WHERE transaction_id IN (?) AND space_id = ? ORDER BY position`,
    [wanted, spaceId],
  );
  const byTransaction = Map.groupBy(lines, ({ id }) => id);
  return heads.map((head) => ({
    ...head,
    lines: (byTransaction.get(head.id) ?? []).map(({ account, amount, balanceAfter }) => ({
      account,
      amount,
      balanceAfter,
    })),
  }));
}

/** A transaction has few entries in a space; most have two. */
const entriesOfTransaction = 2;

/** Reads only ids, entry by entry, until there are enough. With DISTINCT, MariaDB would read all older entries too. */
async function transactionsOf(
  { pool }: Database,
  spaceId: string,
  { order = 'desc', limit, behind }: LedgerPage,
): Promise<string[]> {
  const found = new Set<string>();
  for (let last = behind; ; ) {
    const count = (limit - found.size) * entriesOfTransaction + 1;
    const next = behindSql(order, last === undefined ? undefined : [['transaction_id', last]]);
    const entries = await select<{ id: string }>(
      pool,
      `SELECT transaction_id AS id FROM ledger_entries FORCE INDEX (ledger_entries_space)
        WHERE space_id = ? ${next.sql} ORDER BY transaction_id ${order} LIMIT ?`,
      [spaceId, ...next.values, count],
    );
    for (const { id } of entries) if (found.size < limit) found.add(id);
    if (found.size === limit || entries.length < count) return [...found];
    last = entries.at(-1)?.id;
  }
}
