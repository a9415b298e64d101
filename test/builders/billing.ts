import { newId } from '../../base/ids.ts';
import { audit } from '../../models/billing/audit.ts';
import { topUp } from '../../models/billing/credits.ts';
import { microPerCredit } from '../../models/billing/money.ts';
import { readBalances } from '../../models/billing/report.ts';
import { type Database, transaction } from '../../models/database/database.ts';

/** A space with this many paid credits. */
export async function buildCredits(database: Database, credits: number, spaceId = newId('space')): Promise<string> {
  const sourceId = `test:${newId('grant')}`;
  await transaction(database, (tx) => topUp(tx, { spaceId, sourceId, micro: credits * microPerCredit }));
  return spaceId;
}

/** A space's balances in micro-credits, without zeros. */
export async function balancesOf(database: Database, spaceId: string): Promise<Record<string, number>> {
  const { spaceId: _id, lowSince: _low, ...balances } = await readBalances(database, spaceId);
  return Object.fromEntries(Object.entries(balances).filter(([, micro]) => micro !== 0));
}

/** Fails with the differences if the books are wrong. */
export async function expectBooksInOrder(database: Database): Promise<void> {
  expect((await audit(database)).differences).toEqual([]);
}
