import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import { getComputer } from '../../../models/computers/computer.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { askToRestore } from '../../../models/computers/restoring.ts';
import { askToDelete, askToPause, askToRecover, askToStop, askToWake } from '../../../models/computers/wishes.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// A wish that replaces another one ends that one's operations, so no client waits in vain.

let environment: TestEnvironment;
let hostId: string;

beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_COMPUTERS_RUNNING_PER_SPACE: '1000' });
  hostId = newId('computerHost');
  const host = { id: hostId, address: null, drivers: ['bubblewrap'] as const };
  await reportHost(environment.database, { ...host, cpuMilli: 2_000, memoryMiB: 8_192, maxRunning: 1_000 });
});
afterAll(() => environment.close());

async function computerThat(status: string) {
  const { database } = environment;
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  const [rows] = await database.pool.query('SELECT id FROM computers WHERE space_id = ?', [space.id]);
  const { id } = (rows as { id: string }[])[0] ?? { id: '' };
  await database.pool.query('UPDATE computers SET status = ?, host_id = ?, generation = 1 WHERE id = ?', [
    status,
    hostId,
    id,
  ]);
  const save = saveRow({ spaceId: space.id, computerId: id });
  const snapshotId = newId('computerSnapshot');
  const named = {
    id: snapshotId,
    spaceId: space.id,
    computerId: id,
    saveId: save.id,
    name: 'Kept',
    createdBy: user.id,
  };
  await insertRows(database, {
    home_saves: save,
    computer_snapshots: { ...named, createdAt: new Date() },
  });
  const actor = { userId: user.id, credentialId: null, address: null };
  const request = { spaceId: space.id, computerId: id, actor, snapshotId };
  const operations = async () => {
    const { Operation } = operationModels(database);
    const all = await Operation.findAll({ where: { subjectId: id }, order: [['id', 'ASC']] });
    return all.map((one) => ({ kind: one.kind, status: one.status, code: one.errorCode }));
  };
  return { request, operations, get: () => getComputer(database, space.id, id) };
}

type Request = Parameters<typeof askToRestore>[1];

const wishes = {
  wake: (request: Request) => askToWake(environment, request),
  stop: (request: Request) => askToStop(environment, request),
  pause: (request: Request) => askToPause(environment, request),
  recover: (request: Request) => askToRecover(environment, { ...request, discardHome: false }),
  restore: (request: Request) => askToRestore(environment, request),
  delete: (request: Request) => askToDelete(environment, request),
};
type Verb = keyof typeof wishes;

/** The kinds of operations that may still wait under each wish, because the end of the wish ends them too. */
const waitsFor: Record<string, string[]> = {
  wake: ['wakeComputer', 'recoverComputer', 'stopComputer'],
  stop: ['stopComputer'],
  pause: ['pauseComputer'],
  restore: ['restoreComputer', 'wakeComputer', 'recoverComputer', 'stopComputer'],
  delete: ['deleteComputer'],
};

test('A pause after a wake fails the wake with COMPUTER_PAUSED', async () => {
  const { request, operations } = await computerThat('running');
  for (const verb of ['pause', 'wake', 'pause'] as const) await wishes[verb](request);
  expect(await operations()).toEqual([
    { kind: 'pauseComputer', status: 'failed', code: 'COMPUTER_WOKEN' },
    { kind: 'wakeComputer', status: 'failed', code: 'COMPUTER_PAUSED' },
    { kind: 'pauseComputer', status: 'running', code: null },
  ]);
});

const verbs = Object.keys(wishes) as Verb[];
const pairs = verbs.flatMap((first) =>
  verbs.flatMap((second) => verbs.map((third) => [first, second, third] as const)),
);

test.each(['running', 'paused', 'starting'])(
  'After any three wishes for a computer that is %s, only operations that the last one ends still wait',
  async (status) => {
    for (const wanted of pairs) {
      const { request, operations, get } = await computerThat(status);
      for (const verb of wanted) {
        await wishes[verb](request).catch((error: unknown) => {
          if (!(error instanceof DomainError)) throw error;
        });
      }
      const { wish } = await get().catch(() => ({ wish: 'delete' }));
      const waiting = (await operations()).filter((one) => one.status === 'running').map(({ kind }) => kind);
      const others = waiting.filter((kind) => !(waitsFor[wish ?? ''] ?? []).includes(kind));
      expect({ wanted, wish, others }).toEqual({ wanted, wish, others: [] });
    }
  },
);
