import { newId } from '../../../base/ids.ts';
import { noteAlive, noteGone, noteShutdown } from '../../../models/computers/beats.ts';
import { chargeBegun } from '../../../models/computers/charging.ts';
import { type Computer, getComputer } from '../../../models/computers/computer.ts';
import { lockAnyComputer } from '../../../models/computers/computers.ts';
import { endStep } from '../../../models/computers/ends.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { markUsed } from '../../../models/computers/use.ts';
import { askToPause, askToStop, askToWake } from '../../../models/computers/wishes.ts';
import { transaction } from '../../../models/database/database.ts';
import { balancesOf, buildCredits, expectBooksInOrder } from '../../builders/billing.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The cost of computers, and when they stop by themselves. The tests put times back instead of waiting.

const micro = 1_000_000;
let environment: TestEnvironment;
let hostId: string;

beforeAll(async () => {
  environment = await createTestEnvironment({
    ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE: '0.5',
    ATRIUM_BILLING_ENFORCED: 'true',
  });
  hostId = newId('computerHost');
});
// Keeps the host from seeming lost on a slow machine.
beforeEach(() =>
  reportHost(environment.database, {
    id: hostId,
    address: null,
    drivers: ['bubblewrap'],
    cpuMilli: 2_000,
    memoryMiB: 262_144,
    maxRunning: 100,
  }),
);
afterAll(async () => {
  await expectBooksInOrder(environment.database);
  await environment.close();
});

async function running(credits = 100) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  await buildCredits(database, credits, space.id);
  const [rows] = await database.pool.query('SELECT id FROM computers WHERE space_id = ?', [space.id]);
  const { id } = (rows as { id: string }[])[0] ?? { id: '' };
  const actor = { userId: user.id, credentialId: null, address: null };
  const request = { spaceId: space.id, computerId: id, actor };
  const computer = {
    id,
    request,
    get: () => getComputer(database, space.id, id),
    next: () => nextStep(environment, id),
    async done(step: 'start' | 'stop' | 'pause', code?: string) {
      const { generation } = await computer.get();
      await endStep(environment, { computerId: id, generation, step, ...(code !== undefined && { code }) });
    },
    async wake() {
      await askToWake(environment, request);
      expect(await computer.next()).toMatchObject({ do: 'start', hostId });
      await computer.done('start');
    },
    /** Puts all times of the computer back by `seconds`. With `isSeen` its host has seen it running until now. */
    async passes(seconds: number, { isSeen = true } = {}) {
      const columns = ['status_at', 'started_at', 'alive_at', 'active_at', 'used_at'];
      const back = columns.map((column) => `${column} = ${column} - INTERVAL ${seconds} SECOND`).join(', ');
      await database.pool.query(`UPDATE computers SET ${back} WHERE id = ?`, [id]);
      if (isSeen) await database.pool.query('UPDATE computers SET alive_at = NOW(3) WHERE id = ?', [id]);
    },
    async minutes(): Promise<string[]> {
      const [entries] = await database.pool.query(
        "SELECT source_id AS source FROM ledger_transactions WHERE space_id = ? AND kind = 'computer' ORDER BY id",
        [space.id],
      );
      return (entries as { source: string }[]).map(({ source }) => source.replace(`computer:${id}:`, ''));
    },
    balances: () => balancesOf(database, space.id),
  };
  await computer.wake();
  return computer;
}

const alive = ({ id, generation }: Computer, runningProcesses = 0) => ({
  computerId: id,
  generation,
  state: 'running' as const,
  runningProcesses,
  lastActiveAt: new Date(0),
});

test('Each begun minute of each start is booked once, and no minute of a pause', async () => {
  const computer = await running();
  expect(await computer.minutes()).toEqual(['1:0']);
  await computer.passes(130);
  await Promise.all([computer.next(), computer.next(), computer.next()]);
  expect(await computer.minutes()).toEqual(['1:0', '1:1', '1:2']);
  await askToPause(environment, computer.request);
  expect(await computer.next()).toMatchObject({ do: 'pause' });
  await computer.done('pause');
  await computer.passes(3_600);
  await computer.next();
  expect(await computer.minutes()).toEqual(['1:0', '1:1', '1:2']);
  // The computer has run for 130 seconds, so its fourth minute begins 50 seconds later.
  await computer.wake();
  await computer.passes(10);
  await computer.next();
  expect(await computer.minutes()).toHaveLength(3);
  await computer.passes(45);
  await askToStop(environment, computer.request);
  await computer.next();
  await computer.done('stop');
  await computer.done('stop');
  expect(await computer.minutes()).toEqual(['1:0', '1:1', '1:2', '1:3']);
  await computer.wake();
  expect(await computer.minutes()).toEqual(['1:0', '1:1', '1:2', '1:3', '2:0']);
  expect(await computer.balances()).toMatchObject({ spent: 2.5 * micro });
});

test('A computer that was not charged for hours is then charged in full', async () => {
  const computer = await running(1_000);
  await computer.passes(200 * 60 + 30);
  await noteAlive(environment, hostId, alive(await computer.get(), 1), new Date());
  await computer.next();
  expect(await computer.minutes()).toHaveLength(201);
});

test('Minutes that the host has not confirmed are not booked', async () => {
  const computer = await running();
  await computer.passes(65);
  await noteAlive(environment, hostId, alive(await computer.get()), new Date());
  await computer.passes(600, { isSeen: false });
  await noteGone(environment, hostId, await computer.get(), new Date());
  expect(await computer.get()).toMatchObject({ status: 'error', errorCode: 'COMPUTER_ENDED', startedAt: null });
  expect(await computer.minutes()).toEqual(['1:0', '1:1']);
  await computer.wake();
  await noteShutdown(environment, hostId);
  expect(await computer.get()).toMatchObject({ status: 'stopped', errorCode: 'HOST_STOPPED' });
});

test('An idle computer stops: processes and use keep it running, and reading its state does not', async () => {
  const computer = await running();
  await computer.passes(14 * 60);
  expect(await computer.next()).toMatchObject({ do: 'watch' });
  await computer.passes(2 * 60);
  await noteAlive(environment, hostId, alive(await computer.get(), 1), new Date());
  expect(await computer.next()).toMatchObject({ do: 'watch' });
  await noteAlive(environment, hostId, alive(await computer.get(), 0), new Date());
  expect(await markUsed(environment.database, await computer.get())).toBe(true);
  expect(await computer.next()).toMatchObject({ do: 'watch' });
  await computer.passes(15 * 60 + 1);
  await computer.get();
  expect(await computer.next()).toMatchObject({ do: 'stop' });
  // Too late: the next caller has to wake the computer again.
  expect(await markUsed(environment.database, await computer.get())).toBe(false);
  await computer.done('stop');
  expect(await computer.get()).toMatchObject({ status: 'stopped', errorCode: 'IDLE' });
  await computer.wake();
  expect(await computer.get()).toMatchObject({ status: 'running', errorCode: null });
});

test('A computer without credits stops with CREDITS_EXHAUSTED and cannot be woken', async () => {
  const computer = await running(1);
  await computer.passes(61);
  expect(await computer.next()).toMatchObject({ do: 'stop' });
  await computer.done('stop');
  expect(await computer.get()).toMatchObject({ status: 'stopped', errorCode: 'CREDITS_EXHAUSTED' });
  expect(await computer.balances()).toMatchObject({ spent: micro });
  await expect(askToWake(environment, computer.request)).rejects.toMatchObject({
    kind: 'paymentRequired',
    code: 'CREDITS_EXHAUSTED',
  });
});

test('A start that was cut off is repeated with the next generation, but a resume is not', async () => {
  const computer = await running();
  await askToStop(environment, computer.request);
  await computer.next();
  await computer.done('stop');
  await askToWake(environment, computer.request);
  await computer.done('start', 'GENERATION_ENDED');
  expect(await computer.get()).toMatchObject({ status: 'starting', generation: 3, wish: 'wake' });
  await computer.done('start');
  await askToPause(environment, computer.request);
  await computer.done('pause');
  await askToWake(environment, computer.request);
  await computer.done('start', 'GENERATION_ENDED');
  expect(await computer.get()).toMatchObject({ status: 'error', errorCode: 'COMPUTER_ENDED', generation: 3 });
});

test('A computer that is paused for a day stops with PAUSED_TOO_LONG, and a wake resets that time', async () => {
  const computer = await running();
  const pause = async () => {
    await askToPause(environment, computer.request);
    await computer.next();
    await computer.done('pause');
  };
  await pause();
  await computer.passes(24 * 3_600 - 30);
  expect(await computer.next()).toEqual({ do: 'watch', waitMs: expect.any(Number) });
  await computer.wake();
  await pause();
  // The time of the pause starts again.
  expect(await computer.next()).toMatchObject({ do: 'watch' });
  await computer.passes(24 * 3_600 + 1);
  expect(await computer.next()).toMatchObject({ do: 'stop' });
  await computer.done('stop');
  expect(await computer.get()).toMatchObject({ status: 'stopped', errorCode: 'PAUSED_TOO_LONG', startedAt: null });
  expect(await computer.minutes()).toEqual(['1:0']);
});

test('A paused computer stops when its space has no credits', async () => {
  const computer = await running(1);
  await askToPause(environment, computer.request);
  await computer.next();
  await computer.done('pause');
  expect(await computer.next()).toMatchObject({ do: 'watch' });
  const { spaceId } = computer.request;
  await environment.database.pool.query('UPDATE computers SET started_at = NOW(3) - INTERVAL 90 SECOND WHERE id = ?', [
    computer.id,
  ]);
  await transaction(environment.database, async (tx) => {
    const row = await lockAnyComputer(tx, computer.id);
    if (row !== undefined) await chargeBegun(tx, row, new Date(), environment.config);
  });
  expect((await computer.balances()).available ?? 0).toBe(0);
  expect(await computer.next()).toMatchObject({ do: 'stop' });
  await computer.done('stop');
  expect(await computer.get()).toMatchObject({ spaceId, status: 'stopped', errorCode: 'CREDITS_EXHAUSTED' });
});

test('A computer that its workflow looks at every 30 seconds stops with its credits and leaves no debt', async () => {
  const computer = await running(2);
  let stopped = false;
  for (let looks = 0; !stopped && looks < 20; looks++) {
    await computer.passes(30);
    await noteAlive(environment, hostId, alive(await computer.get(), 1), new Date());
    stopped = (await computer.next()).do === 'stop';
  }
  expect(stopped).toBe(true);
  await computer.done('stop');
  expect(await computer.get()).toMatchObject({ status: 'stopped', errorCode: 'CREDITS_EXHAUSTED' });
  expect(await computer.balances()).toEqual({ paid: 2 * micro, spent: 2 * micro });
});
