import { MockActivityEnvironment } from '@temporalio/testing';
import type { ChatDeps } from '../../activities/chat/deps.ts';
import { createChatSweeps } from '../../activities/chat/sweeps.ts';
import type { CommonDeps } from '../../activities/deps.ts';
import { createOperationSweeps } from '../../activities/operations/sweeps.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

// The sweeper works on more rows than one page holds. A fake launcher says what became of each workflow.

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const perPage = 500;
const created = new Date(Date.now() - 3_600_000);
const idOf = (prefix: string, index: number) => `${prefix}_${String(index).padStart(26, '0')}`;

async function insertTurns(status: 'running' | 'waiting', from: number, count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, index) => {
    const id = idOf('trn', from + index);
    // Many rows share a millisecond, so a page must not skip rows with the same time as its last row.
    const createdAt = new Date(created.getTime() + Math.floor(index / 300));
    return [id, `thr_${id}`, 'spc_1', 'usr_1', 1, status, 'msg', 'msg', 'ask', 'demo', 'default', createdAt];
  });
  await environment.database.pool.query(
    `INSERT INTO turns (id, thread_id, space_id, user_id, ordinal, status, user_message_id, assistant_message_id, mode, model_id,
      notification_priority, created_at) VALUES ?`,
    [rows],
  );
}

async function insertOperations(kinds: string[]): Promise<void> {
  const rows = kinds.map((kind, index) => [idOf('op', index), kind, null, 'usr_1', 'thr_1', 'running', created]);
  await environment.database.pool.query(
    'INSERT INTO operations (id, kind, space_id, user_id, subject_id, status, created_at) VALUES ?',
    [rows],
  );
}

test('Every lost turn is started, and running turns are not described one by one', async () => {
  const [well, lost] = [perPage + 100, 150];
  await insertTurns('running', 0, 50);
  await insertTurns('waiting', 50, well + lost - 50);
  const started: string[] = [];
  const described: string[] = [];
  const deps = {
    config: environment.config,
    database: environment.database,
    logger: createLogger({ level: 'silent' }),
    workflows: {
      runningTurns: async (ids: string[]) => new Set(ids.filter((id) => id < idOf('trn', well))),
      describeTurn: async (id: string) => {
        described.push(id);
        return 'absent';
      },
      startTurn: async ({ id }: { id: string }) => {
        if (id === idOf('trn', well + 1)) throw new Error('This one cannot be started.');
        started.push(id);
        return id === idOf('trn', well + 2) ? 'late' : 'reached';
      },
    },
  } as unknown as ChatDeps;
  const reports = await new MockActivityEnvironment().run(createChatSweeps(deps).sweepTurns);
  expect(reports).toMatchObject([
    { looked: 50, started: 0 },
    { looked: well + lost - 50, started: lost - 2, failed: 2, ended: 0 },
  ]);
  expect(described).toHaveLength(lost);
  expect(new Set(started).size).toBe(lost - 1);
});

test('An operation that fails in the sweep does not stop the operations after it', async () => {
  await insertOperations(['ofANewerVersion', ...Array.from({ length: perPage + 10 }, () => 'deleteThread')]);
  const started: string[] = [];
  const deps = {
    config: environment.config,
    database: environment.database,
    logger: createLogger({ level: 'silent' }),
    workflows: {
      isOfObject: () => false,
      runningOperations: async () => new Set(),
      async describeOperation(kind: string) {
        if (kind === 'ofANewerVersion') throw new Error('Nothing is known of it.');
        return 'absent';
      },
      async startOperation({ id }: { id: string }) {
        started.push(id);
        return 'reached';
      },
    },
  } as unknown as CommonDeps;
  const report = await new MockActivityEnvironment().run(createOperationSweeps(deps).sweepOperations);
  expect(report).toMatchObject({ looked: perPage + 11, started: perPage + 10, failed: 1 });
  expect(new Set(started).size).toBe(perPage + 10);
});
