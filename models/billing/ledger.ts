import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { execute, select } from '../database/sql.ts';
import { maxMicroCredits } from './money.ts';

/**
 * A space's accounts, on two sides. Uses show where credits are (`available`, `reserved`) or went (`spent`, `expired`,
 * `sent` to another space). Sources show where they came from (`granted`, `paid`, `received` from another space), what
 * was taken back after it was spent (`debt`), and what was used while credits were not enforced (`unbilled`). The two
 * sides are always equal, and no account is ever below zero.
 *
 * The sources belong to the system. An account of the system is the sum over all spaces. It has no row of its own,
 * since every posting of every space would have to wait for that row.
 */
export const uses = ['available', 'reserved', 'spent', 'expired', 'sent'] as const;
export const sources = ['granted', 'paid', 'received', 'debt', 'unbilled'] as const;
export const accounts = [...uses, ...sources] as const;
export type Account = (typeof accounts)[number];

/** A space's balances in micro-credits. The caller that holds this object has locked the row. */
export type Balances = Record<Account, number> & { spaceId: string };

export type TransactionKind =
  | 'grant'
  | 'topUp'
  | 'refund'
  | 'dispute'
  | 'reinstatement'
  | 'reserve'
  | 'release'
  | 'call'
  | 'computer'
  | 'storage'
  | 'expiry'
  | 'transfer'
  | 'debtPayment';

export interface Posting {
  /** The event behind the posting: `checkout:cs_…`, `call:<turn>:<step>`. Unique forever. */
  sourceId: string;
  kind: TransactionKind;
  userId?: string | null;
  turnId?: string | null;
  /** A few words for people. */
  detail?: string | null;
}

/** A change of an account's balance. */
export interface Line {
  of: Balances;
  account: Account;
  change: number;
}

/**
 * A posting would not balance, or would leave an account below zero. This is a bug of ours, and nothing was written.
 */
export class LedgerError extends Error {
  override readonly name = 'LedgerError';
}

const columns = accounts.join(', ');

/** Locks a space's accounts until the transaction ends. Opens them if they do not exist. */
export async function lockBalances(tx: Transaction, spaceId: string): Promise<Balances> {
  const read = () =>
    select<Balances>(tx, `SELECT space_id, ${columns} FROM billing_balances WHERE space_id = ? FOR UPDATE`, [spaceId]);
  const [known] = await read();
  if (known !== undefined) return known;
  await execute(tx, 'INSERT IGNORE INTO billing_balances (space_id, opened_at) VALUES (?, ?)', [spaceId, new Date()]);
  const [opened] = await read();
  if (opened === undefined) throw new LedgerError('The accounts could not be opened.');
  return opened;
}

/** Whether the source was posted. The caller must have locked the space's balances, so that the answer stays true. */
export async function isPosted(tx: Transaction, sourceId: string): Promise<boolean> {
  return (await select(tx, 'SELECT 1 FROM ledger_transactions WHERE source_id = ?', [sourceId])).length > 0;
}

/**
 * Writes a ledger transaction. Its entries sum to zero, and each has the resulting balance. Throws
 * UniqueConstraintError if its source was posted before.
 */
export async function post(tx: Transaction, posting: Posting, lines: readonly Line[]): Promise<void> {
  const moved = lines.filter(({ change }) => change !== 0);
  const entries = moved.map((line) => ({ ...line, amount: signed(line) }));
  const sum = entries.reduce((total, { amount }) => total + amount, 0);
  if (entries.length < 2 || sum !== 0) throw new LedgerError(`${posting.kind}: the entries do not add up (${sum}).`);
  const id = newId('ledgerTransaction');
  const rows: unknown[][] = [];
  for (const [position, { of, account, change, amount }] of entries.entries()) {
    const balance = of[account] + change;
    if (!Number.isSafeInteger(change) || balance < 0 || balance > maxMicroCredits) {
      throw new LedgerError(`${posting.kind}: ${account} cannot be ${balance}.`);
    }
    of[account] = balance;
    rows.push([id, position, of.spaceId, account, amount, balance]);
  }
  const { sourceId, kind, userId = null, turnId = null, detail = null } = posting;
  const spaceId = entries[0]?.of.spaceId;
  await execute(
    tx,
    'INSERT INTO ledger_transactions (id, source_id, kind, space_id, user_id, turn_id, detail, created_at) VALUES (?)',
    [[id, sourceId, kind, spaceId, userId, turnId, detail, new Date()]],
  );
  await execute(
    tx,
    'INSERT INTO ledger_entries (transaction_id, position, space_id, account, amount, balance_after) VALUES ?',
    [rows],
  );
  for (const row of new Set(moved.map(({ of }) => of))) await save(tx, row);
}

async function save(tx: Transaction, { spaceId, ...balances }: Balances): Promise<void> {
  await execute(tx, 'UPDATE billing_balances SET ? WHERE space_id = ?', [balances, spaceId]);
}

/** Entries of source accounts are negated, so that each transaction sums to zero. */
function signed({ account, change }: Line): number {
  return (sources as readonly string[]).includes(account) ? -change : change;
}
