import { drainFurther, drainHost } from '../../../models/computers/draining.ts';
import { endStep } from '../../../models/computers/ends.ts';
import { nextStep } from '../../../models/computers/steps.ts';
import { askToRecover, askToWake } from '../../../models/computers/wishes.ts';
import { buildComputerRow, removeComputerRows, reportTestHost, silenceHost } from '../../builders/computerRows.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// Computers with labels run only on hosts that have all of these.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());
beforeEach(async () => {
  await removeComputerRows(environment);
  jest.spyOn(process, 'uptime').mockReturnValue(3_600);
});
afterEach(() => jest.restoreAllMocks());

const buildHost = (labels: string[], more: Parameters<typeof reportTestHost>[1] = {}) =>
  reportTestHost(environment, { labels, ...more });

async function buildComputer(labels: string[], { status = 'created', hostId = null as string | null } = {}) {
  const { id, spaceId, request, set, get } = await buildComputerRow(environment);
  const save = saveRow({ spaceId, computerId: id });
  await insertRows(environment.database, { home_saves: save });
  const homeSaveId = hostId === null ? null : save.id;
  await set({ labels: JSON.stringify(labels), status, hostId, generation: 1, homeSaveId });
  return {
    id,
    request,
    get,
    step: () => nextStep(environment, id),
    end: (step: 'release' | 'stop', generation: number, code?: string) =>
      endStep(environment, { computerId: id, generation, step, ...(code !== undefined && { code }) }),
    wake: () => askToWake(environment, request),
  };
}

const silence = (hostId: string) => silenceHost(environment, hostId);

test('A new computer goes to a host that has all of its labels', async () => {
  await buildHost([]);
  await buildHost(['gpu']);
  const both = await buildHost(['eu', 'gpu', 'fast'], { maxRunning: 1 });
  const [first, second] = [await buildComputer(['gpu', 'eu']), await buildComputer(['gpu', 'eu'])];
  expect((await first.wake()).computer.hostId).toBe(both);
  await expect(second.wake()).rejects.toMatchObject({
    code: 'NO_HOST',
    message: 'No host has capacity for the computer now. Stop other computers, or try again later.',
  });
  const third = await buildComputer(['gpu', 'us']);
  const detail = 'No host here runs computers with bubblewrap and gpu and us.';
  await expect(third.wake()).rejects.toMatchObject({ code: 'NO_HOST', message: detail });
});

test('A failover brings a computer only to a host that has its labels', async () => {
  const own = await buildHost(['gpu']);
  await buildHost([]);
  const [stays, leaves] = [
    await buildComputer(['gpu'], { status: 'running', hostId: own }),
    await buildComputer(['gpu'], { status: 'running', hostId: own }),
  ];
  await silence(own);
  expect(await stays.step()).toEqual({ do: 'rest' });
  expect(await stays.get()).toMatchObject({ status: 'error', errorCode: 'HOST_LOST', hostId: own });
  const other = await buildHost(['gpu']);
  expect(await leaves.step()).toMatchObject({ do: 'start', hostId: other });
  await stays.wake();
  expect(await stays.step()).toMatchObject({ do: 'start', hostId: other });
});

test('A drain leaves a computer running until another host has its labels', async () => {
  const own = await buildHost(['gpu']);
  await buildHost([]);
  const { id, step, get } = await buildComputer(['gpu'], { status: 'running', hostId: own });
  expect(await drainHost(environment, own)).toEqual({ left: 1, stuck: [] });
  expect(await step()).toMatchObject({ do: 'watch' });
  expect(await get()).toMatchObject({ id, status: 'running', wish: 'move', hostId: own });
  await buildHost(['gpu']);
  expect(await step()).toMatchObject({ do: 'stop' });
  expect(await drainFurther(environment, own)).toEqual({ left: 1, stuck: [] });
});

test('A computer whose host lacks a label moves before it starts', async () => {
  const own = await buildHost([]);
  const computers = [
    await buildComputer(['gpu'], { status: 'stopped', hostId: own }),
    await buildComputer(['gpu'], { status: 'error', hostId: own }),
  ];
  for (const { wake, get } of computers) {
    await expect(wake()).rejects.toMatchObject({ code: 'NO_HOST' });
    expect(await get()).toMatchObject({ hostId: own, wish: null });
  }
  const other = await buildHost(['gpu']);
  for (const { wake, get, step, end } of computers) {
    const { operation } = await wake();
    expect(await get()).toMatchObject({ wish: 'move', wakesAfterMove: true, errorCode: null });
    expect((await wake()).operation?.id).toBe(operation?.id);
    expect(await step()).toMatchObject({ do: 'release', hostId: own, generation: 1 });
    await end('release', 1);
    expect(await step()).toMatchObject({ do: 'start', hostId: other, generation: 2 });
    expect(await get()).toMatchObject({ status: 'starting', wish: 'wake' });
  }
  const running = await buildComputer(['gpu'], { status: 'running', hostId: own });
  await askToRecover(environment, { ...running.request, discardHome: false });
  expect(await running.step()).toMatchObject({ do: 'stop', hostId: own });
  await running.end('stop', 1);
  expect(await running.step()).toMatchObject({ do: 'release', hostId: own });
});

test('A computer that cannot leave a host without its labels says why, and tries again with the next wake', async () => {
  const own = await buildHost([]);
  await buildHost(['gpu']);
  const { wake, step, end, get } = await buildComputer(['gpu'], { status: 'stopped', hostId: own });
  const { operation } = await wake();
  expect(await step()).toMatchObject({ do: 'release' });
  await end('release', 1, 'QUOTA_EXCEEDED');
  expect(await get()).toMatchObject({ status: 'error', errorCode: 'QUOTA_EXCEEDED', wish: null, hostId: own });
  expect(await step()).toEqual({ do: 'rest' });
  await operation?.reload();
  expect(operation).toMatchObject({ status: 'failed' });
  await wake();
  expect(await step()).toMatchObject({ do: 'release' });
  // The operator has given its host the label meanwhile.
  await end('release', 1, 'QUOTA_EXCEEDED');
  await buildHost(['gpu'], { id: own });
  await wake();
  expect(await step()).toMatchObject({ do: 'start', hostId: own });
});
