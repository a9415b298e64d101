import { topUp } from '../../models/billing/credits.ts';
import { transaction } from '../../models/database/database.ts';
import { startFakeStripe } from '../fakes/stripeServer.ts';
import { runAtrium } from '../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let atrium: TestEnvironment;
beforeAll(async () => {
  atrium = await createTestEnvironment();
  await run('user', 'add', 'ada@example.org');
});
afterAll(() => atrium.close());

const run = (...args: string[]) => runAtrium(args, atrium.environment);
const runJson = async <T = Record<string, unknown>>(...args: string[]) =>
  JSON.parse((await run(...args, '--json')).stdout) as T;
const addSpace = async (name: string) => (await runJson<{ id: string }>('space', 'add', name)).id;
const doctor = async (variables: Record<string, string>) => {
  const { stdout, code } = await runAtrium(['doctor', '--json'], { ...atrium.environment, ...variables });
  const { checks } = JSON.parse(stdout) as { checks: { name: string; state: string; detail: string }[] };
  return { code, payments: checks.find(({ name }) => name === 'payments') };
};

test('a grant or transfer with the same --once name happens once, and the balances show it', async () => {
  const [from, to] = [await addSpace('From'), await addSpace('To')];
  expect(await runJson('billing', 'grant', from, '10.5', '--once', 'welcome')).toEqual({ given: true });
  expect(await runJson('billing', 'grant', from, '10.5', '--once', 'welcome')).toEqual({ given: false });
  expect(await runJson('billing', 'transfer', from, to, '4', '--once', 'move')).toEqual({ moved: true });
  expect(await run('billing', 'transfer', from, to, '100')).toMatchObject({ code: 1 });
  const balances = await runJson('billing', 'balances', '--space', from);
  expect(balances).toMatchObject({ available: 6.5, granted: 10.5, sent: 4 });
  expect(await runJson('billing', 'balances')).toMatchObject({ available: 10.5, granted: 10.5, sent: 4, received: 4 });
  expect(await run('billing', 'grant', 'spc_none', '1')).toMatchObject({
    code: 1,
    output: 'There is no space spc_none.\n',
  });
  for (const args of [
    ['grant', from, '-1'],
    ['grant', from, 'ten'],
    ['transfer', from, to, '0'],
    ['grant', from, '5', '--expires', '2001-01-01'],
  ]) {
    const { code, output } = await run('billing', ...args);
    expect([args, code, output.split('\n')[0]]).toEqual([args, 1, expect.stringMatching(/^error: .* It is not a /)]);
  }
});

test('billing check passes correct books, and exits with 1 and the reason for wrong ones', async () => {
  const spaceId = await addSpace('Checked');
  const { database } = atrium;
  await transaction(database, (tx) => topUp(tx, { spaceId, sourceId: 'checkout:x', micro: 5_000_000 }));
  expect(await run('billing', 'check')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('The books are right'),
  });

  const differs = async (wrong: string, right: string) => {
    await database.pool.query(wrong, [spaceId]);
    const { code, stdout } = await run('billing', 'check');
    await database.pool.query(right, [spaceId]);
    expect(code).toBe(1);
    return stdout;
  };
  const balance = (change: string) =>
    `UPDATE billing_balances SET available = available ${change}, paid = paid ${change} WHERE space_id = ?`;
  expect(await differs(balance('+ 1'), balance('- 1'))).toMatch(
    new RegExp(`available is the sum of its entries: ${spaceId} is 5000001, its entries sum to 5000000`),
  );
  const grant = (change: string) =>
    `UPDATE billing_grants SET amount = amount ${change}, remaining = remaining ${change}`;
  expect(await differs(`${grant('+ 1')} WHERE space_id = ?`, `${grant('- 1')} WHERE space_id = ?`)).toContain(
    'available is what is left of the grants',
  );
  expect((await run('billing', 'check')).code).toBe(0);
});

test('doctor reports how credits are bought, and what is wrong with payments', async () => {
  expect(await doctor({})).toMatchObject({
    code: 0,
    payments: { state: 'ok', detail: expect.stringMatching(/development page/) },
  });
  expect(await doctor({ ATRIUM_PAYMENTS: 'none' })).toMatchObject({ code: 0, payments: { state: 'off' } });
  const stripe = await startFakeStripe();
  try {
    expect(await doctor(stripe.environment)).toMatchObject({
      code: 0,
      payments: { state: 'ok', detail: expect.stringMatching(/takes the key/) },
    });
    stripe.failNext(401, 401);
    expect(await doctor(stripe.environment)).toMatchObject({
      code: 1,
      payments: { state: 'wrong', detail: expect.stringMatching(/401/) },
    });
    const live = { ...stripe.environment, ATRIUM_STRIPE_SECRET_KEY: 'sk_live_fake' };
    expect(await doctor(live)).toMatchObject({
      code: 1,
      payments: { state: 'wrong', detail: expect.stringMatching(/https/) },
    });
  } finally {
    await stripe.stop();
  }
});
