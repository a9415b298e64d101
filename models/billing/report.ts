import type { Database } from '../database.ts';
import { type Account, accounts, type Balances, type TransactionKind } from './ledger.ts';

/** A transaction of a space's ledger, with its lines as changes of balances. */
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

/** A space's balances as they are now; zeros before its first credit. */
export async function readBalances(database: Database, spaceId: string): Promise<Balances & { lowSince: Date | null }> {
  const [rows] = await database.pool.query(
    `SELECT space_id AS spaceId, ${accounts.join(', ')}, low_since AS lowSince FROM billing_balances WHERE space_id = ?`,
    [spaceId],
  );
  return (rows as (Balances & { lowSince: Date | null })[])[0] ?? { spaceId, ...nothing, lowSince: null };
}

/** The newest transactions first. */
export async function readLedger(
  database: Database,
  spaceId: string,
  { limit, before }: { limit: number; before?: string | undefined },
): Promise<LedgerRecord[]> {
  const [ids] = await database.pool.query(
    `SELECT DISTINCT transaction_id AS id FROM ledger_entries
      WHERE space_id = ? ${before === undefined ? '' : 'AND transaction_id < ?'} ORDER BY transaction_id DESC LIMIT ?`,
    before === undefined ? [spaceId, limit] : [spaceId, before, limit],
  );
  const wanted = (ids as { id: string }[]).map(({ id }) => id);
  if (wanted.length === 0) return [];
  const [heads] = await database.pool.query(
    `SELECT id, source_id AS sourceId, kind, user_id AS userId, turn_id AS turnId, detail, created_at AS createdAt
       FROM ledger_transactions WHERE id IN (?) ORDER BY id DESC`,
    [wanted],
  );
  const [lines] = await database.pool.query(
    `SELECT transaction_id AS id, account, amount, balance_after AS balanceAfter FROM ledger_entries
      WHERE transaction_id IN (?) AND space_id = ? ORDER BY position`,
    [wanted, spaceId],
  );
  const byTransaction = Map.groupBy(lines as (LedgerRecord['lines'][number] & { id: string })[], ({ id }) => id);
  return (heads as LedgerRecord[]).map((head) => ({
    ...head,
    lines: (byTransaction.get(head.id) ?? []).map(({ account, amount, balanceAfter }) => ({
      account,
      amount,
      balanceAfter,
    })),
  }));
}
