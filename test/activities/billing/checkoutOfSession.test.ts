import { checkoutOfSession } from '../../../activities/billing/settlement.ts';
import { newId } from '../../../base/ids.ts';
import { insertCheckout, markOpen } from '../../../models/billing/checkouts.ts';
import { type Database, transaction } from '../../../models/database/database.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { type Statement, sqlOf } from '../../support/recordStatements.ts';

// The process crashed before it stored a checkout's session, and two notifications about the session come at once.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

async function checkoutWithoutSession(): Promise<string> {
  const id = newId('checkout');
  const now = new Date();
  await transaction(environment.database, (tx) =>
    insertCheckout(tx, {
      ...{ id, kind: 'topUp', spaceId: newId('space'), userId: 'usr_1', amountMinor: 1_000, currency: 'usd' },
      ...{ microCredits: 1_000_000, provider: 'stripe', operationId: `op_${id}` },
      ...{ createdAt: now, expiresAt: new Date(now.getTime() + 3_600_000) },
    }),
  );
  return id;
}

/** A database in which another notification stores the session right after the lookup. */
function storedMeanwhile(checkoutId: string, sessionId: string): Database {
  const { database } = environment;
  const query = async (statement: Statement, values: unknown[]) => {
    const found = await database.pool.query(statement as string, values);
    if (sqlOf(statement).includes('session_id = ?')) {
      const session = { id: sessionId, url: 'https://example.org' };
      await transaction(database, (tx) => markOpen(tx, checkoutId, session));
    }
    return found;
  };
  return { ...database, pool: { query } } as unknown as Database;
}

test.each([
  ['the same session is the checkout’s', 'cs_same', 'cs_same', true],
  ['another session is not', 'cs_mine', 'cs_other', false],
])('When another notification stores a session meanwhile, %s', async (_name, told, stored, isFound) => {
  const id = await checkoutWithoutSession();
  const [sessionId, storedId] = [`${told}_${id}`, `${stored}_${id}`];
  const session = {
    ...{ sessionId, paymentId: 'pi_1', checkoutId: id, status: 'complete' as const, paid: true },
    ...{ amountMinor: 1_000, currency: 'usd' },
  };
  const found = await checkoutOfSession(storedMeanwhile(id, storedId), session);
  expect(found?.id).toBe(isFound ? id : undefined);
});
