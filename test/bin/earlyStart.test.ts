import { EarlyStarts } from '../../activities/computers/earlyStarts.ts';
import { startOrdered } from '../../activities/computers/startOrdered.ts';
import { createLiveComputers } from '../../bin/computers/liveComputers.ts';
import { createServices, type Services } from '../../bin/support/services.ts';
import type { Host } from '../../integrations/computers/host/host.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { defaultComputer } from '../../models/computers/defaultComputer.ts';
import { endStep } from '../../models/computers/ends.ts';
import { reportHost } from '../../models/computers/hosts.ts';
import { nextStep } from '../../models/computers/steps.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { buildHost, hostDir, runOn } from '../builders/host.ts';
import { buildSpace, buildUser } from '../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { waitFor } from '../support/waitFor.ts';

// A computer is started by an API process that is also its host, before Temporal hears of it.

let environment: TestEnvironment;
let services: Services;

beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  services = await createServices({ config, logger, readers: false, remoteWriters: false, database });
});
afterAll(async () => {
  await services.close();
  await environment.close();
});

async function on(host: Host) {
  const { identity, database, config } = services;
  await reportHost(database, {
    id: host.hostId,
    address: null,
    drivers: ['bubblewrap'],
    cpuMilli: 2_000,
    memoryMiB: 8_192,
    maxRunning: 100,
  });
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const { id } = await defaultComputer(database, space.id);
  const deps = { ...services, host, environment: {} };
  const earlyStarts = new EarlyStarts(deps);
  const told: string[] = [];
  const live = createLiveComputers({
    database,
    config,
    launcher: {
      startOperation: async ({ kind }) => {
        told.push(kind);
        return 'late';
      },
    },
    hostOf: async () => host,
    startEarly: (computer) => earlyStarts.begin(computer),
  });
  const ref = { spaceId: space.id, computerId: id };
  const by = { userId: user.id, credentialId: null, address: null };
  return {
    deps,
    earlyStarts,
    told,
    awake: () => live.awake(ref, by),
    running: () => live.running(ref),
    get: () => getComputer(database, space.id, id),
    next: () => nextStep(services, id),
    end: (generation: number) => endStep(services, { computerId: id, generation, step: 'start' }),
  };
}

test('a request that does not start the computer gets COMPUTER_WAKES until the workflow has recorded the start', async () => {
  await using built = await buildHost({ dir: hostDir() });
  const computer = await on(built.host);
  await computer.awake();
  expect((await computer.get()).status).toBe('starting');
  await expect(computer.running()).rejects.toMatchObject({ kind: 'unavailable', code: 'COMPUTER_WAKES' });
});

test('a computer runs programs at once, and its workflow later finds it running and records that', async () => {
  await using built = await buildHost({ dir: hostDir() });
  const computer = await on(built.host);
  const clients = await Promise.all(Array.from({ length: 10 }, () => computer.awake()));
  for (const client of clients.slice(0, 2)) {
    expect(await runOn(client, 'echo $$ once >> started; cat started | wc -l')).toMatchObject({ exitCode: 0 });
  }
  // It is told a moment later, which a fast machine does not need for all of this.
  await waitFor('the workflow to be told', () => computer.told.length > 0);
  expect(new Set(computer.told)).toEqual(new Set(['wakeComputer']));
  expect(await computer.get()).toMatchObject({ status: 'starting', wish: 'wake', generation: 1 });

  const before = await built.host.inspect((await computer.get()).id);
  expect(await computer.next()).toMatchObject({ do: 'start', generation: 1 });
  await startOrdered(computer.deps, await computer.get());
  await computer.end(1);
  expect(await computer.get()).toMatchObject({ status: 'running', wish: null, generation: 1 });
  const { startedAt } = before as Extract<typeof before, { startedAt: string }>;
  expect(await built.host.inspect((await computer.get()).id)).toMatchObject({ state: 'running', startedAt });
});

test('if the early start fails, the request waits until the workflow has started the computer', async () => {
  await using built = await buildHost({ dir: hostDir() });
  const { host } = built;
  const failing = { ...host, start: () => Promise.reject(new Error('no room')) } as Host;
  const computer = await on(failing);
  const waiting = computer.awake();
  await waitFor('the workflow to be told', () => computer.told.length > 0);
  await startOrdered({ ...computer.deps, host }, await computer.get());
  await computer.end(1);
  expect(await runOn(await waiting, 'echo by the workflow')).toMatchObject({ stdout: 'by the workflow\n' });
});

test('an early start does not begin for a computer of another host, with a wish to stop, or after close', async () => {
  await using built = await buildHost({ dir: hostDir() });
  const computer = await on(built.host);
  const row = { ...(await computer.get()), status: 'starting', wish: 'wake', generation: 1 } as const;
  expect(await computer.earlyStarts.begin({ ...row, hostId: 'hst_other' })).toBe(false);
  expect(await computer.earlyStarts.begin({ ...row, hostId: built.host.hostId, wish: 'stop' })).toBe(false);
  await computer.earlyStarts.close();
  expect(await computer.earlyStarts.begin({ ...row, hostId: built.host.hostId })).toBe(false);
  expect(await built.host.inspect(row.id)).toEqual({ state: 'absent' });
});

describe('a computer that is deleted during its early start', () => {
  /** Starts a computer early, and deletes it before or after the host has started it. */
  async function startedAndDeleted(when: 'before' | 'after') {
    await using built = await buildHost({ dir: hostDir() });
    const { host } = built;
    const { database, computers } = services;
    const remove = async (id: string) => {
      await host.destroy(id);
      await database.pool.query('DELETE FROM computers WHERE id = ?', [id]);
    };
    const starts: string[] = [];
    const watched = {
      ...host,
      start: async (spec: Parameters<Host['start']>[0]) => {
        starts.push(spec.computerId);
        const started = await host.start(spec);
        // The workflow that deletes the computer looked at the host before this start, and found no computer.
        if (when === 'after') await database.pool.query('DELETE FROM computers WHERE id = ?', [spec.computerId]);
        return started;
      },
    } as Host;
    const computer = await on(watched);
    const slow: typeof computers = {
      ...computers,
      async orderOf(row) {
        const order = await computers.orderOf(row);
        if (when === 'before') await remove(row.id);
        return order;
      },
    };
    const earlyStarts = new EarlyStarts({ ...computer.deps, computers: slow });
    const { id, spaceId } = await computer.get();
    await database.pool.query(
      "UPDATE computers SET status = 'starting', wish = 'wake', generation = 1, host_id = ? WHERE id = ? AND space_id = ?",
      [host.hostId, id, spaceId],
    );
    expect(await earlyStarts.begin(await computer.get())).toBe(false);
    return {
      starts,
      hosted: await host.inspect(id),
      known: (await host.list()).map(({ computerId }) => computerId),
      id,
    };
  }

  test('is not started if it was deleted while its variables were opened', async () => {
    const { starts, hosted } = await startedAndDeleted('before');
    expect([starts, hosted]).toEqual([[], { state: 'absent' }]);
  });

  test('is removed from the host if it was started all the same', async () => {
    const { starts, hosted, known, id } = await startedAndDeleted('after');
    expect([starts, hosted]).toEqual([[id], { state: 'absent' }]);
    expect(known).not.toContain(id);
  });
});
