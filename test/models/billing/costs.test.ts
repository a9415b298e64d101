import { newId } from '../../../base/ids.ts';
import { costOfComputer, costsOfCalls } from '../../../models/billing/costs.ts';
import { settle } from '../../../models/billing/holds.ts';
import { chargeComputerMinutes } from '../../../models/billing/usage.ts';
import { transaction } from '../../../models/database/database.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test('The cost of each call of a turn is the amount booked for it', async () => {
  const { database } = environment;
  const [spaceId, userId, turnId] = [newId('space'), newId('user'), newId('turn')];
  const of = { spaceId, userId, turnId, modelId: 'demo', enforced: false };
  for (const [step, cost] of [0, 7, 11].entries()) {
    await transaction(database, (tx) => settle(tx, { ...of, id: `${turnId}:${step}`, cost }));
  }
  const other = newId('turn');
  await transaction(database, (tx) => settle(tx, { ...of, turnId: other, id: `${other}:1`, cost: 13 }));
  expect(await costsOfCalls(database, turnId, [])).toEqual(new Map());
  expect(await costsOfCalls(database, turnId, [0, 1, 2, 3])).toEqual(
    new Map([
      [1, 7],
      [2, 11],
    ]),
  );
});

test('The cost of a computer is the sum booked for it in the period', async () => {
  const { database } = environment;
  const spaceId = newId('space');
  const [computerId, other] = [newId('computer'), newId('computer')];
  const rates = { computerCreditsPerMinute: 0.5, storageCreditsPerGibDay: 0, enforced: false };
  const charge = (id: string, from: number, to: number) =>
    transaction(database, (tx) =>
      chargeComputerMinutes(tx, rates, { spaceId, computerId: id, generation: 1, from, to }),
    );
  const from = new Date();
  await charge(computerId, 0, 3);
  await charge(other, 0, 5);
  const to = new Date(Date.now() + 1);
  const later = new Date(to.getTime() + 60_000);
  const of = { spaceId, computerId };
  expect(await costOfComputer(database, { ...of, from, to })).toBe(1_500_000);
  expect(await costOfComputer(database, { ...of, from: to, to: later })).toBe(0);
  expect(await costOfComputer(database, { spaceId: newId('space'), computerId, from, to })).toBe(0);
});
