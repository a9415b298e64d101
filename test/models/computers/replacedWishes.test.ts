import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import { askToRestore } from '../../../models/computers/restoring.ts';
import { askToDelete, askToPause, askToRecover, askToStop, askToWake } from '../../../models/computers/wishes.ts';
import { operationModels } from '../../../models/operations/operation.ts';
import { buildComputerRow, reportTestHost } from '../../builders/computerRows.ts';
import { insertRows } from '../../builders/rows.ts';
import { saveRow } from '../../builders/save.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

// A wish that replaces another one ends that one's operations, so no client waits in vain.

let environment: TestEnvironment;
let hostId: string;

beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_COMPUTERS_RUNNING_PER_SPACE: '1000' });
  hostId = await reportTestHost(environment, { maxRunning: 1_000 });
});
afterAll(() => environment.close());

async function computerThat(status: string) {
  const { database } = environment;
  const columns = { status, hostId, generation: 1 };
  const { id, spaceId, userId, get, ...built } = await buildComputerRow(environment, columns);
  const save = saveRow({ spaceId, computerId: id });
  const snapshotId = newId('computerSnapshot');
  const named = {
    id: snapshotId,
    spaceId,
    computerId: id,
    saveId: save.id,
    name: 'Kept',
    createdBy: userId,
  };
  await insertRows(database, {
    home_saves: save,
    computer_snapshots: { ...named, createdAt: new Date() },
  });
  const request = { ...built.request, snapshotId };
  const operations = async () => {
    const { Operation } = operationModels(database);
    const all = await Operation.findAll({ where: { subjectId: id }, order: [['id', 'ASC']] });
    return all.map((one) => ({ kind: one.kind, status: one.status, code: one.errorCode }));
  };
  return { request, operations, get };
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
