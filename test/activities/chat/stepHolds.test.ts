import { setTimeout as delay } from 'node:timers/promises';
import { CancelledFailure } from '@temporalio/activity';
import { ModelStep, type StepDeps } from '../../../activities/chat/modelStep.ts';
import { runStep } from '../../../activities/chat/runStep.ts';
import { StepHolds } from '../../../activities/chat/stepHolds.ts';
import type { CallModelResult } from '../../../activities/chat/stepResult.ts';
import { findHeld } from '../../../models/chat/callHolds.ts';
import { chatModels } from '../../../models/chat/models.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { WriterFencedError } from '../../../models/chat/turnLog/entry.ts';
import { transaction } from '../../../models/database/database.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { buildTurn, buildTurnLog } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { waitFor } from '../../support/waitFor.ts';

/** First steps that another process takes: how long this process waits for them, and what it finds then. */
const holdMs = 900;
const logger = createLogger({ level: 'silent' });
const never = new AbortController().signal;
const nobody = async () => undefined;
const usage = { inputTokens: 3, cachedInputTokens: 0, outputTokens: 2, reasoningTokens: 0 };

let environment: TestEnvironment;
let deps: StepDeps;
beforeAll(async () => {
  environment = await createTestEnvironment();
  const { config, database } = environment;
  const { turnLog } = buildTurnLog(database);
  deps = { config, database, turnLog, metering: { settle: nobody } } as never;
});
afterAll(async () => {
  await deps.turnLog.close();
  await environment.close();
});

const holds = (ofMs = holdMs) => new StepHolds({ logger, database: environment.database, holdMs: ofMs });

/** A turn whose first step is held, as when its message has just been accepted. */
async function heldTurn(ofMs = holdMs): Promise<Turn> {
  const turn = await buildTurn(environment.database);
  await transaction(environment.database, (tx) =>
    chatModels(tx).ModelCall.begin(tx, { turnId: turn.id, step: 0, modelId: 'demo', firstSeq: 3, holdMs: ofMs }),
  );
  return turn;
}

const isHeld = async ({ id }: Turn) => (await findHeld(environment.database, [id], 0)).has(id);

test('A step stays held until its result is known, and then the wait for it ends', async () => {
  const turn = await heldTurn();
  const { promise: result, resolve } = Promise.withResolvers<CallModelResult>();
  const holding = holds().during(turn.id, result, { leavesResult: true });
  let isFree = false;
  const waiting = holds()
    .whileHeld(turn.id, never, nobody)
    .then(() => {
      isFree = true;
    });
  const until = Date.now() + 2 * holdMs;
  await waitFor('two holds to pass', () => Date.now() > until);
  expect(isFree).toBe(false);
  resolve({ kind: 'failed', code: 'PROVIDER_DOWN', retryable: true });
  await holding;
  await waiting;
  expect(await isHeld(turn)).toBe(false);
});

test('A locked row does not keep other steps from being held', async () => {
  const [locked, other] = await Promise.all([heldTurn(), heldTurn()]);
  const { promise: result, resolve } = Promise.withResolvers<CallModelResult>();
  const shared = holds();
  const holding = [locked, other].map(({ id }) => shared.during(id, result, { leavesResult: false }));
  const connection = await environment.database.pool.getConnection();
  await connection.query('START TRANSACTION');
  await connection.query('SELECT * FROM model_calls WHERE turn_id = ? FOR UPDATE', [locked.id]);
  await waitFor('the locked hold to run out', async () => !(await isHeld(locked)));
  expect(await isHeld(other)).toBe(true);
  await connection.query('ROLLBACK');
  connection.release();
  resolve({ kind: 'alreadyEnded' });
  await Promise.all(holding);
});

test('A stop by the workflow is passed on to the holder, and any other abort ends the wait', async () => {
  const turn = await heldTurn(60_000);
  const stop = new AbortController();
  let stops = 0;
  const waiting = holds().whileHeld(turn.id, stop.signal, async () => stops++);
  stop.abort(new CancelledFailure('CANCELLED'));
  await waitFor('the stop to be passed on', () => stops === 1);
  await environment.database.pool.query('UPDATE model_calls SET held_until = NULL WHERE turn_id = ?', [turn.id]);
  await waiting;
  const shutDown = AbortSignal.abort(new Error('stopping'));
  const held = await heldTurn(60_000);
  await expect(holds().whileHeld(held.id, shutDown, nobody)).rejects.toThrow('stopping');
});

test('The failure of a call in another process becomes its result here, once', async () => {
  const turn = await heldTurn();
  const failure = { kind: 'failed', code: 'RATE_LIMITED', retryable: true, retryAfterMs: 3_000 } as const;
  await holds().during(turn.id, Promise.resolve(failure), { leavesResult: true });
  const take = () =>
    runStep(
      { ...deps, stepHolds: holds(), stopWatch: { watch: () => ({ signal: never, [Symbol.dispose]() {} }) } } as never,
      { turnId: turn.id, step: 0, modelId: 'demo' },
      { cancelled: never },
    );
  expect(await take()).toEqual(failure);
  // The second attempt calls the model, which fails with these dependencies.
  await expect(take()).rejects.toThrow(TypeError);
});

test('A step that ends between two checks is not taken again', async () => {
  const turn = await heldTurn();
  const ending = {
    async whileHeld() {
      const step = new ModelStep(deps, turn, 0, 'demo');
      await step.open();
      step.add({ type: 'text-start', id: 't' });
      step.add({ type: 'text-delta', id: 't', delta: 'Done.' });
      await step.end({ status: 'completed', finishReason: 'length', usage });
    },
  };
  const input = { turnId: turn.id, step: 0, modelId: 'demo' };
  const result = await runStep({ ...deps, stepHolds: ending } as never, input, { cancelled: never });
  expect(result).toEqual({ kind: 'answered', finishReason: 'length' });
  // A process that did not check cannot take the step either.
  await expect(new ModelStep(deps, turn, 0, 'demo').open()).rejects.toThrow(WriterFencedError);
});

test('After a silence of the database, a hold that ran out counts until its holder had time to renew it', async () => {
  const graces: number[] = [];
  const silent = {
    pool: {
      async query(_statement: object, [[turnId], graceMs]: [string[], number]) {
        graces.push(graceMs);
        const isFirst = graces.length === 1;
        if (graces.length === 2) await delay(holdMs / 2);
        return [isFirst || graceMs > 0 ? [[turnId]] : [], [{ name: 'turn_id' }]];
      },
    },
  };
  const waiting = new StepHolds({ logger, database: silent as never, holdMs }).whileHeld('turn', never, nobody);
  await waiting;
  const firstGrace = graces.findIndex((ms) => ms > 0);
  // The query is repeated at once, and only a query without grace ends the wait.
  expect(firstGrace).toBe(2);
  expect(graces[firstGrace]).toBeGreaterThan(holdMs / 2);
  expect(graces.slice(firstGrace).filter((ms) => ms > 0).length).toBeGreaterThan(1);
  expect(graces.at(-1)).toBe(0);
});
