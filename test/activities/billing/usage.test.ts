import { MockActivityEnvironment } from '@temporalio/testing';
import type { BillingDeps } from '../../../activities/billing/deps.ts';
import { createStorageMetering } from '../../../activities/billing/storage.ts';
import { newId } from '../../../base/ids.ts';
import { chargeComputerMinutes, requireCredits } from '../../../models/billing/usage.ts';
import { transaction } from '../../../models/database/database.ts';
import { balancesOf, buildCredits, expectBooksInOrder } from '../../builders/billing.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Charges by time: computers and storage.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_BILLING_STORAGE_CREDITS_PER_GIB_DAY: '2' });
});
afterAll(async () => {
  await expectBooksInOrder(environment.database);
  await environment.close();
});

const rates = { computerCreditsPerMinute: 0.5, storageCreditsPerGibDay: 2, enforced: true };
const micro = 1_000_000;

test('A computer’s minute is booked once, and the part without credits becomes a debt', async () => {
  const { database } = environment;
  const spaceId = await buildCredits(database, 1);
  const computerId = newId('hold');
  const book = (generation: number, from: number, to: number, enforced = true) =>
    transaction(database, (tx) =>
      chargeComputerMinutes(tx, { ...rates, enforced }, { spaceId, computerId, generation, from, to }),
    );
  expect([await book(1, 0, 1), await book(1, 0, 1), await book(2, 0, 1)]).toEqual([1, 0, 1]);
  expect(await balancesOf(database, spaceId)).toEqual({ spent: micro, paid: micro });
  await expect(requireCredits(database, rates, spaceId)).rejects.toMatchObject({
    ...{ kind: 'paymentRequired', code: 'CREDITS_EXHAUSTED', link: { rel: 'payment' } },
  });
  expect(await book(2, 0, 2)).toBe(1);
  expect(await book(2, 0, 3, false)).toBe(1);
  expect(await balancesOf(database, spaceId)).toEqual({
    ...{ spent: 2 * micro, paid: micro, debt: 0.5 * micro, unbilled: 0.5 * micro },
  });
});

test('Use without a price is not booked, and no request is refused when credits are not enforced', async () => {
  const { database } = environment;
  const spaceId = newId('space');
  const free = { ...rates, computerCreditsPerMinute: 0 };
  const minutes = { spaceId, computerId: 'c', generation: 1, from: 0, to: 5 };
  expect(await transaction(database, (tx) => chargeComputerMinutes(tx, free, minutes))).toBe(0);
  await requireCredits(database, free, spaceId);
  await requireCredits(database, { ...rates, enforced: false }, spaceId);
  expect(await balancesOf(database, spaceId)).toEqual({});
});

test('A day of storage is booked once per space, by the size of its drive', async () => {
  const { database, config } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  await buildCredits(database, 10, space.id);
  await database.pool.query('INSERT INTO drives SET ?', [{ space_id: space.id, used_bytes: 1.5 * 1024 ** 3 }]);
  const { meterStorage } = createStorageMetering({ database, config } as BillingDeps);
  const run = () => new MockActivityEnvironment().run(meterStorage);
  expect([await run(), await run()]).toEqual([1, 0]);
  expect(await balancesOf(database, space.id)).toEqual({ available: 7 * micro, spent: 3 * micro, paid: 10 * micro });
});
