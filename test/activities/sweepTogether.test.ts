import { MockActivityEnvironment } from '@temporalio/testing';
import { keepAlive } from '../../activities/keepAlive.ts';
import { sweepEach } from '../../activities/sweepEach.ts';
import { createSweepTogether } from '../../activities/sweepTogether.ts';
import { sweepAges } from '../../models/sweeping/sweepRounds.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

const logger = createLogger({ level: 'silent' });
const hour = 3_600_000;

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

function together(
  sweeps: Record<string, () => Promise<unknown>>,
  limits: { budgetMs?: number; patienceMs?: number } = {},
) {
  const sweep = createSweepTogether({ logger, database: environment.database, budgetMs: hour, ...limits }, sweeps);
  return () => new MockActivityEnvironment().run(sweep);
}

/** Rejects when the time of the sweep is over. */
async function untilOutOfTime(): Promise<never> {
  const { cancelled } = keepAlive();
  return new Promise((_, reject) => {
    cancelled.addEventListener('abort', () => reject(cancelled.reason as Error));
    if (cancelled.aborted) reject(cancelled.reason as Error);
  });
}

test('Sweeps run concurrently, and a failure is reported after the others have ended', async () => {
  const { promise: firstSeen, resolve: seeFirst } = Promise.withResolvers<void>();
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>();
  let hasEnded = false;
  const sweep = together({
    async sweepFirst() {
      seeFirst();
      await failed;
      hasEnded = true;
      return 1;
    },
    async sweepSecond() {
      await firstSeen;
      fail();
      throw new Error('the second');
    },
  });
  await expect(sweep()).rejects.toMatchObject({ message: 'Failed: sweepSecond', nonRetryable: true });
  expect(hasEnded).toBe(true);
});

test('The report lists the result of each sweep', async () => {
  const sweep = together({ sweepFirst: async () => 1, sweepSecond: async () => ({ looked: 2 }) });
  expect(await sweep()).toEqual({ sweepFirst: 1, sweepSecond: { looked: 2 } });
});

test('A sweep that runs out of time is no failure, and only finished sweeps get a new time', async () => {
  const at = (name: string, days: number) => [name, new Date(Date.now() - days * 24 * hour), null, null];
  const rows = [at('sweepSlow', 2), at('sweepFine', 3)];
  await environment.database.pool.query('INSERT INTO sweep_rounds VALUES ?', [rows]);
  const sweep = together({ sweepSlow: untilOutOfTime, sweepFine: async () => 3 }, { budgetMs: 1 });
  expect(await sweep()).toEqual({ sweepSlow: 'unfinished', sweepFine: 3 });
  const ages = await sweepAges(environment.database, ['sweepSlow', 'sweepFine', 'sweepUnknown']);
  expect(Object.fromEntries([...ages].map(([name, age]) => [name, Math.floor(age / 86_400)]))).toEqual({
    sweepSlow: 2,
    sweepFine: 0,
  });
});

test('A list that takes several rounds continues after the last row, and each row is looked at once', async () => {
  const since = new Date(0);
  const ids = Array.from({ length: 100 }, (_, index) => String(index).padStart(3, '0'));
  const looked: string[] = [];
  const many = () =>
    sweepEach({
      logger,
      before: new Date(),
      page: async ({ after }) =>
        ids
          .filter((id) => after === undefined || id > after.id)
          .slice(0, 30)
          .map((id) => ({ id, since })),
      async look({ id }) {
        if (id.endsWith('9')) await untilOutOfTime().catch(() => undefined);
        looked.push(id);
        return 'left';
      },
    });
  const sweep = together({ many }, { budgetMs: 1 });
  let rounds = 1;
  while (((await sweep()) as { many: unknown }).many === 'unfinished') rounds++;
  expect([...looked].sort()).toEqual(ids);
  // Each round stops after the rows in progress, at most twenty.
  expect(rounds).toBeGreaterThan(5);
});

test('A sweep that does not stop is skipped until it ends, and the others go on', async () => {
  const { promise: freed, resolve: free } = Promise.withResolvers<void>();
  let begun = 0;
  const sweep = together(
    {
      async sweepStuck() {
        begun++;
        await freed;
      },
      sweepFine: async () => 3,
    },
    { budgetMs: 1, patienceMs: 1 },
  );
  await expect(sweep()).rejects.toMatchObject({ message: 'Failed: sweepStuck' });
  await expect(sweep()).rejects.toMatchObject({ message: 'Failed: sweepStuck' });
  expect(begun).toBe(1);
  free();
  expect(await sweep()).toMatchObject({ sweepFine: 3 });
});
