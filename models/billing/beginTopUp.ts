import type { Transaction } from 'sequelize';
import { newId } from '../../base/ids.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import { type Checkout, findCheckout, insertCheckout } from './checkouts.ts';

/** Stripe allows a session to live for at most a day. */
const checkoutHours = 23;

/**
 * Writes the intent to buy credits: the checkout, and the operation that watches it. The same id returns the same
 * operation.
 */
export async function beginTopUp(
  database: Database,
  intent: Pick<Checkout, 'spaceId' | 'userId' | 'amountMinor' | 'currency' | 'microCredits' | 'provider'> & {
    id: string;
    returnUrl: string | undefined;
  },
): Promise<Operation> {
  const make = async (tx: Transaction): Promise<Operation> => {
    const known = await findCheckout(database, 'id', intent.id);
    if (known !== undefined) {
      return operationModels(tx).Operation.findByPk(known.operationId, { rejectOnEmpty: true, transaction: tx });
    }
    const now = new Date();
    const { spaceId, userId } = intent;
    const operation = await operationModels(tx).Operation.begin(
      { id: newId('operation'), kind: 'topUp', spaceId, userId, subjectId: intent.id },
      tx,
    );
    await insertCheckout(tx, {
      ...intent,
      kind: 'topUp',
      operationId: operation.id,
      createdAt: now,
      expiresAt: new Date(now.getTime() + checkoutHours * 3_600_000),
    });
    return operation;
  };
  // An earlier attempt may be about to commit. The retry finds it.
  return transaction(database, make, { retryDuplicates: true });
}
