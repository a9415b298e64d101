import { newId } from '../../base/ids.ts';
import { grant, transfer } from '../../models/billing/credits.ts';
import { accounts } from '../../models/billing/ledger.ts';
import { toCredits, toMicro } from '../../models/billing/money.ts';
import { type Database, transaction } from '../../models/database/database.ts';
import { select } from '../../models/database/sql.ts';
import { CommandFailure } from './failure.ts';

/** Balances in credits, of one space or of all spaces together. The sum of all includes the system's own accounts. */
export async function readTotals(database: Database, spaceId?: string): Promise<Record<string, number>> {
  if (spaceId !== undefined) await requireSpace(database, spaceId);
  const sums = accounts.map((account) => `CAST(COALESCE(SUM(${account}), 0) AS SIGNED) AS ${account}`).join(', ');
  const sql = `SELECT ${sums} FROM billing_balances ${spaceId === undefined ? '' : 'WHERE space_id = ?'}`;
  const rows = await select<Record<string, number>>(database.pool, sql, spaceId === undefined ? [] : [spaceId]);
  const totals = rows[0] ?? {};
  return Object.fromEntries(accounts.map((account) => [account, toCredits(Number(totals[account] ?? 0))]));
}

/** False if a gift with this name was given before. */
export async function giveCredits(
  database: Database,
  spaceId: string,
  credits: number,
  { expires, once }: { expires?: Date; once?: string },
): Promise<boolean> {
  await requireSpace(database, spaceId);
  const sourceId = `operator:${once ?? newId('grant')}`;
  const movement = {
    spaceId,
    sourceId,
    micro: toMicro(credits),
    detail: 'by the operator',
    expiresAt: expires ?? null,
  };
  return transaction(database, (tx) => grant(tx, movement));
}

/** False if the balance is too low, or a transfer with this name was made before. */
export async function moveCredits(
  database: Database,
  from: string,
  to: string,
  credits: number,
  once?: string,
): Promise<boolean> {
  await requireSpace(database, from);
  await requireSpace(database, to);
  const sourceId = `transfer:${once ?? newId('ledgerTransaction')}`;
  return transaction(database, (tx) => transfer(tx, { from, to, micro: toMicro(credits), sourceId }));
}

async function requireSpace(database: Database, spaceId: string): Promise<void> {
  const rows = await select<unknown>(database.pool, 'SELECT 1 FROM spaces WHERE id = ?', [spaceId]);
  if (rows.length === 0) throw new CommandFailure(`There is no space ${spaceId}.`);
}
