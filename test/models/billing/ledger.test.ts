import { newId } from '../../../base/ids.ts';
import { grant, topUp, transfer } from '../../../models/billing/credits.ts';
import { release, reserve, settle } from '../../../models/billing/holds.ts';
import { LedgerError, lockBalances, post } from '../../../models/billing/ledger.ts';
import { reverse } from '../../../models/billing/reversals.ts';
import { saveCaps } from '../../../models/billing/settings.ts';
import { transaction } from '../../../models/database/database.ts';
import { balancesOf, buildCredits, expectBooksInOrder } from '../../builders/billing.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(async () => {
  await expectBooksInOrder(environment.database);
  await environment.close();
});

const tx = <T>(work: Parameters<typeof transaction<T>>[1]) => transaction<T>(environment.database, work);
const balances = (spaceId: string) => balancesOf(environment.database, spaceId);
const request = (spaceId: string, id: string, micro: number, enforced = true) => ({
  ...{ id, spaceId, userId: 'usr_1', turnId: 'trn_1', modelId: 'm', inputTokens: 1 },
  ...{ atLeast: micro, atMost: micro, enforced },
});
const settlement = (spaceId: string, id: string, cost: number, enforced = true) => ({
  ...{ id, spaceId, userId: 'usr_1', turnId: 'trn_1', modelId: 'm', cost, enforced },
});

test('One of 50 concurrent holds for the last credit succeeds, and 49 are refused with a link to top up', async () => {
  const spaceId = await buildCredits(environment.database, 1);
  const results = await Promise.allSettled(
    Array.from({ length: 50 }, (_, i) => tx((t) => reserve(t, request(spaceId, `fifty${i}:0`, 1_000_000)))),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const result of results) {
    if (result.status === 'fulfilled') continue;
    expect(result.reason).toMatchObject({ kind: 'paymentRequired', code: 'CREDITS_EXHAUSTED' });
    expect(result.reason.message).toContain(`/api/billing/${spaceId}/top-up`);
  }
  expect(await balances(spaceId)).toEqual({ reserved: 1_000_000, paid: 1_000_000 });
});

test('A call that is tried several times is reserved once and settled once', async () => {
  const spaceId = await buildCredits(environment.database, 10);
  for (const _ of [1, 2, 3]) await tx((t) => reserve(t, request(spaceId, 'again:0', 4_000_000)));
  expect(await balances(spaceId)).toMatchObject({ available: 6_000_000, reserved: 4_000_000 });
  for (const _ of [1, 2]) await tx((t) => settle(t, settlement(spaceId, 'again:0', 1_500_000)));
  expect(await balances(spaceId)).toEqual({ available: 8_500_000, spent: 1_500_000, paid: 10_000_000 });
  expect(await tx((t) => release(t, spaceId, 'again:0'))).toBe(false);
});

test('A call that is retried on another model reserves that model’s price, and a failed call reserves nothing', async () => {
  const spaceId = await buildCredits(environment.database, 10);
  await tx((t) => reserve(t, request(spaceId, 'dearer:0', 1_000_000)));
  await tx((t) => reserve(t, request(spaceId, 'dearer:0', 6_000_000)));
  await tx((t) => reserve(t, request(spaceId, 'dearer:0', 2_000_000)));
  expect(await balances(spaceId)).toMatchObject({ available: 8_000_000, reserved: 2_000_000 });
  expect(await tx((t) => release(t, spaceId, 'dearer:0'))).toBe(true);
  expect(await balances(spaceId)).toEqual({ available: 10_000_000, paid: 10_000_000 });
  await tx((t) => reserve(t, request(spaceId, 'dearer:0', 3_000_000)));
  await tx((t) => settle(t, settlement(spaceId, 'dearer:0', 3_000_000)));
  expect(await balances(spaceId)).toEqual({ available: 7_000_000, spent: 3_000_000, paid: 10_000_000 });
});

test('A call that costs more than the balance leaves a debt, which the next credits pay', async () => {
  const spaceId = await buildCredits(environment.database, 1);
  await tx((t) => settle(t, settlement(spaceId, 'over:0', 1_500_000)));
  expect(await balances(spaceId)).toEqual({ spent: 1_500_000, paid: 1_000_000, debt: 500_000 });
  await buildCredits(environment.database, 2, spaceId);
  expect(await balances(spaceId)).toEqual({ available: 1_500_000, spent: 1_500_000, paid: 3_000_000 });
});

test('Use beyond the credits is unbilled if credits are not enforced', async () => {
  const spaceId = await buildCredits(environment.database, 1);
  await tx((t) => settle(t, settlement(spaceId, 'free:0', 1_500_000, false)));
  expect(await balances(spaceId)).toEqual({ spent: 1_500_000, paid: 1_000_000, unbilled: 500_000 });
});

test('Grants are spent before payments, the soonest to expire first, and expired credits never', async () => {
  const spaceId = await buildCredits(environment.database, 5);
  const later = new Date(Date.now() + 60_000);
  const give = (sourceId: string, micro: number, expiresAt?: Date) =>
    tx((t) => grant(t, { spaceId, sourceId: `${sourceId}:${spaceId}`, micro, expiresAt }));
  await give('lasting', 1_000_000);
  await give('soon', 1_000_000, later);
  await give('over', 3_000_000, new Date(Date.now() - 1));
  await tx((t) => settle(t, settlement(spaceId, 'order:0', 2_500_000)));
  const [rows] = await environment.database.pool.query(
    'SELECT source_id AS source, remaining FROM billing_grants WHERE space_id = ? ORDER BY id',
    [spaceId],
  );
  expect((rows as { remaining: number }[]).map(({ remaining }) => remaining)).toEqual([4_500_000, 0, 0, 0]);
  expect(await balances(spaceId)).toMatchObject({ available: 4_500_000, expired: 3_000_000, spent: 2_500_000 });
});

test('A dispute takes what is left of its payment, and the spent part becomes a debt', async () => {
  const spaceId = newId('space');
  await tx((t) => topUp(t, { spaceId, sourceId: `checkout:a${spaceId}`, micro: 10_000_000 }));
  await tx((t) => settle(t, settlement(spaceId, 'spent:0', 7_000_000)));
  const payment = { spaceId, sourceId: `checkout:a${spaceId}`, micro: 10_000_000, detail: 'x' };
  const dispute = { sourceId: `dispute:${spaceId}`, micro: 10_000_000, kind: 'dispute' as const, returned: false };
  expect(await tx((t) => reverse(t, payment, dispute))).toBe(true);
  expect(await tx((t) => reverse(t, payment, dispute))).toBe(false);
  expect(await balances(spaceId)).toEqual({ spent: 7_000_000, debt: 7_000_000 });
  await expect(tx((t) => reserve(t, request(spaceId, 'indebt:0', 1)))).rejects.toMatchObject({
    code: 'CREDITS_EXHAUSTED',
  });
  await tx((t) => reverse(t, payment, { ...dispute, returned: true }));
  await tx((t) => reverse(t, payment, dispute));
  expect(await balances(spaceId)).toEqual({ available: 3_000_000, spent: 7_000_000, paid: 10_000_000 });
});

test('Refunds and disputes of a payment never take more than its amount, and end the same in any order', async () => {
  const told = [
    { sourceId: 'refund:a', kind: 'refund', micro: 4_000_000, returned: false },
    { sourceId: 'refund:b', kind: 'refund', micro: 3_000_000, returned: false },
    { sourceId: 'refund:b', kind: 'refund', micro: 3_000_000, returned: true },
    { sourceId: 'dispute:c', kind: 'dispute', micro: 10_000_000, returned: false },
    { sourceId: 'dispute:c', kind: 'dispute', micro: 10_000_000, returned: true },
  ] as const;
  for (const order of permutations(told)) {
    const spaceId = await buildCredits(environment.database, 5);
    const payment = { spaceId, sourceId: `checkout:${spaceId}`, micro: 10_000_000, detail: 'x' };
    await tx((t) => topUp(t, payment));
    await tx((t) => settle(t, settlement(spaceId, `${spaceId}:0`, 2_000_000)));
    for (const one of order) {
      await tx((t) => reverse(t, payment, { ...one, sourceId: `${one.sourceId}:${spaceId}` }));
      expect((await balances(spaceId)).paid).toBeGreaterThanOrEqual(5_000_000);
    }
    expect(await balances(spaceId)).toEqual({ available: 9_000_000, spent: 2_000_000, paid: 11_000_000 });
  }
});

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

test('Caps apply per turn, per day and per member, and count open holds', async () => {
  const spaceId = await buildCredits(environment.database, 100);
  await saveCaps(environment.database, spaceId, { perTurn: 3_000_000, perDay: 5_000_000, perMemberPerDay: 4_000_000 });
  const ask = (id: string, turnId: string, userId: string, micro: number) =>
    tx((t) => reserve(t, { ...request(spaceId, id, micro), turnId, userId, enforced: false }));
  const capped = { kind: 'paymentRequired', code: 'SPENDING_CAP_REACHED' };
  const ids = [1, 2, 3].map((n) => `${spaceId}-${n}`);
  await ask(`${ids[0]}:0`, ids[0] ?? '', 'a', 2_000_000);
  await expect(ask(`${ids[0]}:1`, ids[0] ?? '', 'a', 2_000_000)).rejects.toMatchObject(capped);
  await ask(`${ids[1]}:0`, ids[1] ?? '', 'a', 2_000_000);
  await expect(ask(`${ids[2]}:0`, ids[2] ?? '', 'a', 500_000)).rejects.toMatchObject(capped);
  await expect(ask(`${ids[2]}:0`, ids[2] ?? '', 'b', 1_500_000)).rejects.toMatchObject(capped);
  await ask(`${ids[2]}:0`, ids[2] ?? '', 'b', 1_000_000);
});

test('A call that grows after midnight counts against the caps of the new day', async () => {
  const spaceId = await buildCredits(environment.database, 100);
  const caps = { perTurn: null, perDay: 5_000_000, perMemberPerDay: null };
  await saveCaps(environment.database, spaceId, caps);
  const ids = [1, 2, 3].map((n) => `${spaceId}-late${n}:0`);
  const ask = (id: string, micro: number) => tx((t) => reserve(t, request(spaceId, id, micro)));
  for (const id of ids) await ask(id, 1_000_000);
  const { pool } = environment.database;
  for (const table of ['billing_holds', 'billing_day_use']) {
    await pool.query(`UPDATE ${table} SET day = day - INTERVAL 1 DAY WHERE space_id = ?`, [spaceId]);
  }
  const [first = '', second = '', third = ''] = ids;
  await ask(first, 4_000_000);
  const capped = { kind: 'paymentRequired', code: 'SPENDING_CAP_REACHED' };
  await expect(ask(second, 4_000_000)).rejects.toMatchObject(capped);
  await ask(third, 1_000_000);
  const [use] = await pool.query(
    "SELECT CAST(micro AS SIGNED) AS micro FROM billing_day_use WHERE space_id = ? AND user_id = '' ORDER BY day",
    [spaceId],
  );
  expect(use).toEqual([{ micro: 1_000_000 }, { micro: 5_000_000 }]);
});

test('A transfer happens only once, and only with enough credits', async () => {
  const from = await buildCredits(environment.database, 2);
  const to = newId('space');
  const move = (sourceId: string) => tx((t) => transfer(t, { from, to, micro: 1_500_000, sourceId }));
  expect([await move('transfer:1'), await move('transfer:1'), await move('transfer:2')]).toEqual([true, false, false]);
  expect(await balances(to)).toEqual({ available: 1_500_000, received: 1_500_000 });
  expect(await balances(from)).toEqual({ available: 500_000, sent: 1_500_000, paid: 2_000_000 });
});

test('The ledger refuses negative balances, and written entries cannot be changed', async () => {
  const spaceId = await buildCredits(environment.database, 1);
  const line = (account: 'available' | 'spent', change: number) => async (t: Parameters<typeof lockBalances>[0]) =>
    post(t, { sourceId: newId('grant'), kind: 'call' }, [
      { of: await lockBalances(t, spaceId), account, change },
      { of: await lockBalances(t, spaceId), account: 'reserved', change: -change },
    ]);
  await expect(tx(line('available', 5))).rejects.toThrow(LedgerError);
  const { pool } = environment.database;
  await expect(pool.query('UPDATE ledger_entries SET amount = 0')).rejects.toThrow('append-only');
  await expect(pool.query('DELETE FROM ledger_transactions')).rejects.toThrow('append-only');
  expect(await balances(spaceId)).toEqual({ available: 1_000_000, paid: 1_000_000 });
});
