import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { type Checkout, insertCheckout, markCheckout } from './checkouts.ts';
import { lockSettings } from './setup.ts';

interface Due {
  spaceId: string;
  userId: string;
  amountMinor: number;
  monthlyLimitMinor: number;
}

const chargeHours = 24;

/** Spaces whose credits are below their threshold and that may charge for more. */
export async function spacesToTopUp(database: Database, after: string, limit: number): Promise<string[]> {
  const sql = `SELECT s.space_id FROM billing_settings s
       JOIN billing_balances b ON b.space_id = s.space_id JOIN spaces ON spaces.id = s.space_id
      WHERE s.auto_enabled = 1 AND s.auto_failed_at IS NULL AND s.customer_id IS NOT NULL
        AND b.available < s.auto_threshold AND spaces.deleted_at IS NULL AND s.space_id > ?
      ORDER BY s.space_id LIMIT ?`;
  const rows = await select<{ spaceId: string }>(database.pool, sql, [after, limit]);
  return rows.map(({ spaceId }) => spaceId);
}

/** Writes the intent to charge for more credits. Undefined if a charge is running or the monthly limit is reached. */
export async function beginAutoTopUp(
  database: Database,
  spaceId: string,
  terms: { currency: string; provider: string; microOf: (amountMinor: number) => number },
): Promise<Operation | undefined> {
  return transaction(database, async (tx) => {
    await lockSettings(tx, spaceId);
    const [due] = await select<Due>(
      tx,
      `SELECT s.space_id, s.auto_user_id AS userId, s.auto_amount_minor AS amountMinor,
              s.auto_monthly_limit_minor AS monthlyLimitMinor
         FROM billing_settings s JOIN billing_balances b ON b.space_id = s.space_id
        WHERE s.space_id = ? AND s.auto_enabled = 1 AND s.auto_failed_at IS NULL AND b.available < s.auto_threshold`,
      [spaceId],
    );
    if (due === undefined) return undefined;
    const now = new Date();
    const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
    const [made] = await select<{ running: number; minor: number }>(
      tx,
      `SELECT CAST(COALESCE(SUM(ended_at IS NULL), 0) AS SIGNED) AS running,
              CAST(COALESCE(SUM(IF(created_at >= ? AND status <> 'failed', amount_minor, 0)), 0) AS SIGNED) AS minor
         FROM billing_checkouts WHERE space_id = ? AND kind = 'autoTopUp' AND created_at >= ? - INTERVAL 7 DAY`,
      [month, spaceId, month],
    );
    if ((made?.running ?? 0) > 0 || (made?.minor ?? 0) + due.amountMinor > due.monthlyLimitMinor) return undefined;
    const id = newId('checkout');
    const operation = await operationModels(tx).Operation.begin(
      { kind: 'autoTopUp', spaceId, userId: due.userId, subjectId: id },
      tx,
    );
    await insertCheckout(tx, {
      id,
      kind: 'autoTopUp',
      spaceId,
      userId: due.userId,
      amountMinor: due.amountMinor,
      currency: terms.currency,
      microCredits: terms.microOf(due.amountMinor),
      provider: terms.provider,
      operationId: operation.id,
      createdAt: now,
      expiresAt: new Date(now.getTime() + chargeHours * 3_600_000),
    });
    return operation;
  });
}

/**
 * Ends a refused automatic top-up and turns automatic top-ups off. Retrying a failing card every half minute would not
 * help.
 */
export async function refuseAutoTopUp(tx: Transaction, checkout: Pick<Checkout, 'id' | 'spaceId'>): Promise<void> {
  if (!(await markCheckout(tx, checkout.id, 'failed'))) return;
  await execute(tx, 'UPDATE billing_settings SET auto_failed_at = ? WHERE space_id = ?', [
    new Date(),
    checkout.spaceId,
  ]);
}

/**
 * Turns off every automatic top-up until its owner sets it again, as a refused charge does. For a restored
 * installation, which cannot know all charges that were made.
 */
export async function stopAutoTopUps({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const sql = 'UPDATE billing_settings SET auto_failed_at = ? WHERE auto_enabled = 1 AND auto_failed_at IS NULL';
  await execute(pool, sql, [new Date()]);
}
