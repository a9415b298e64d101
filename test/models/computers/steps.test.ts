import { newId } from '../../../base/ids.ts';
import { noteAlive } from '../../../models/computers/beats.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { endStep } from '../../../models/computers/ends.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { askToPause, askToStop, askToWake } from '../../../models/computers/wishes.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// The next step of a computer, and its state after a failure at an unlucky moment.

let environment: TestEnvironment;
let hostId: string;
beforeAll(async () => {
  environment = await createTestEnvironment({});
});
afterAll(() => environment.close());
beforeEach(async () => {
  hostId = newId('computerHost');
  const report = { address: null, drivers: ['bubblewrap'] as const, cpuMilli: 2_000, memoryMiB: 8_192, maxRunning: 9 };
  await environment.database.pool.query('DELETE FROM computers');
  await environment.database.pool.query('DELETE FROM computer_hosts');
  await reportHost(environment.database, { id: hostId, ...report });
});
afterEach(() => jest.restoreAllMocks());

async function computer() {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const [rows] = await database.pool.query('SELECT id FROM computers WHERE space_id = ?', [space.id]);
  const { id: computerId = '' } = (rows as { id: string }[])[0] ?? {};
  const request = { spaceId: space.id, computerId, actor: { userId: user.id, credentialId: null, address: null } };
  return { computerId, request, now: () => getComputer(database, space.id, computerId) };
}

describe('A silent host', () => {
  const silent = () =>
    environment.database.pool.query("UPDATE computer_hosts SET seen_at = '2020-01-01' WHERE id = ?", [hostId]);
  const upFor = (seconds: number) => jest.spyOn(process, 'uptime').mockReturnValue(seconds);

  it('A process that has just started waits for a silent host, so a restart of both loses no wish', async () => {
    const { computerId, request, now } = await computer();
    await askToWake(environment, request);
    await silent();
    upFor(1);
    await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'start', hostId });
    await endStep(environment, { computerId, generation: 1, step: 'start' });
    await askToPause(environment, request);
    await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'pause' });
    await expect(now()).resolves.toMatchObject({ status: 'running', wish: 'pause' });
  });

  it('A silent host is lost for a process that has run for long', async () => {
    const { computerId, request, now } = await computer();
    await askToWake(environment, request);
    await silent();
    upFor(3_600);
    await expect(nextStep(environment, computerId)).resolves.toEqual({ do: 'rest' });
    await expect(now()).resolves.toMatchObject({ status: 'error', errorCode: 'HOST_LOST' });
  });
});

describe('A late interruption of a step', () => {
  it('A start that is still wanted is repeated with the next generation', async () => {
    const { computerId, request, now } = await computer();
    const { operation } = await askToWake(environment, request);
    await endStep(environment, { computerId, generation: 1, step: 'start', code: 'COMPUTER_STOPPED' });
    await expect(now()).resolves.toMatchObject({ status: 'starting', wish: 'wake', generation: 2 });
    await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'start', generation: 2 });
    // The end of the first start changes nothing any more.
    await endStep(environment, { computerId, generation: 1, step: 'start' });
    await expect(now()).resolves.toMatchObject({ status: 'starting', wish: 'wake', generation: 2 });
    await operation?.reload();
    expect(operation?.status).toBe('running');
  });

  it('A start that was too late already fails with TIMED_OUT', async () => {
    const { computerId, request, now } = await computer();
    const { operation } = await askToWake(environment, request);
    const long = "UPDATE computers SET status_at = '2020-01-01' WHERE id = ?";
    await environment.database.pool.query(long, [computerId]);
    await endStep(environment, { computerId, generation: 1, step: 'start', code: 'COMPUTER_STOPPED' });
    await expect(now()).resolves.toMatchObject({ status: 'error', errorCode: 'TIMED_OUT' });
    await operation?.reload();
    expect(operation).toMatchObject({ status: 'failed', errorCode: 'TIMED_OUT' });
  });

  it('A pause that is still wanted is repeated, and a pause that a stop replaced is not', async () => {
    const { computerId, request, now } = await computer();
    await askToWake(environment, request);
    await endStep(environment, { computerId, generation: 1, step: 'start' });
    await askToPause(environment, request);
    await endStep(environment, { computerId, generation: 1, step: 'pause', code: 'COMPUTER_STOPPED' });
    await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'pause' });
    await askToStop(environment, request);
    await endStep(environment, { computerId, generation: 1, step: 'pause', code: 'COMPUTER_STOPPED' });
    await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'stop' });
    await expect(now()).resolves.toMatchObject({ status: 'stopping', wish: 'stop' });
  });

  it('A start that a stop replaced is not repeated', async () => {
    const { computerId, request, now } = await computer();
    await askToWake(environment, request);
    await askToStop(environment, request);
    await endStep(environment, { computerId, generation: 1, step: 'start', code: 'COMPUTER_STOPPED' });
    await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'stop', generation: 1 });
    await expect(now()).resolves.toMatchObject({ status: 'stopping' });
  });
});

it('A pause does not fail because the host looked before the pause was asked for', async () => {
  const { computerId, request, now } = await computer();
  await askToWake(environment, request);
  await endStep(environment, { computerId, generation: 1, step: 'start' });
  const { operation } = await askToPause(environment, request);
  await endStep(environment, { computerId, generation: 1, step: 'pause', code: 'NOT_ORDERED' });
  await expect(now()).resolves.toMatchObject({ wish: 'pause' });
  await operation?.reload();
  expect(operation?.status).toBe('running');
  await expect(nextStep(environment, computerId)).resolves.toMatchObject({ do: 'pause' });
});

describe('A report that comes late, when a later step is under way', () => {
  /** A computer that was started, with the order of each of its next steps. */
  async function started() {
    const { computerId, request, now } = await computer();
    const order = async () => {
      const step = await nextStep(environment, computerId);
      if (!('number' in step)) throw new Error(`There is no step to take, but ${step.do}.`);
      const { do: name, generation, number } = step;
      return { computerId, generation, number, step: name };
    };
    await askToWake(environment, request);
    const start = await order();
    await endStep(environment, start);
    const pause = async () => {
      await askToPause(environment, request);
      const step = await order();
      await endStep(environment, step);
      return step;
    };
    const resume = async () => void (await askToWake(environment, request));
    return { computerId, now, order, start, pause, resume };
  }

  it('The end of a pause does not pause a computer that was resumed since', async () => {
    const { now, order, pause, resume } = await started();
    const late = await pause();
    await resume();
    await endStep(environment, await order());
    await endStep(environment, late);
    await expect(now()).resolves.toMatchObject({ status: 'running', wish: null });
  });

  it('The end of a start does not end the resume that is under way', async () => {
    const { now, order, start, pause, resume } = await started();
    await pause();
    await resume();
    const step = await order();
    await endStep(environment, start);
    await endStep(environment, { ...start, code: 'TIMED_OUT' });
    await expect(now()).resolves.toMatchObject({ status: 'starting', wish: 'wake' });
    await endStep(environment, step);
    await expect(now()).resolves.toMatchObject({ status: 'running', wish: null });
  });

  it('A workflow from before steps had numbers reports without one', async () => {
    const { computerId, now, pause, resume } = await started();
    await pause();
    await resume();
    await endStep(environment, { computerId, generation: 1, step: 'start' });
    await expect(now()).resolves.toMatchObject({ status: 'running' });
  });

  it('A computer that its row calls paused although it runs gets its state back from its host', async () => {
    const { computerId, now, pause } = await started();
    await pause();
    const { statusAt } = await now();
    const of = { computerId, generation: 1, runningProcesses: 1, lastActiveAt: new Date() };
    const seen = (state: 'running' | 'paused', afterMs: number) =>
      noteAlive(environment, hostId, { ...of, state }, new Date(statusAt.getTime() + afterMs));
    // The host was asked before the pause.
    await expect(seen('running', -1)).resolves.toBe('fine');
    await expect(seen('paused', 1_000)).resolves.toBe('fine');
    await expect(now()).resolves.toMatchObject({ status: 'paused' });
    await expect(seen('running', 1_000)).resolves.toMatchObject({ spaceId: expect.any(String) });
    await expect(now()).resolves.toMatchObject({ status: 'running', startedAt: expect.any(Date) });
  });
});
