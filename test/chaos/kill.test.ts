import { setTimeout as delay } from 'node:timers/promises';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { buildTurnLog } from '../builders/turnLog.ts';
import { inFull } from '../support/inFull.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { seededRandom } from '../support/random.ts';
import { sizeOf } from '../support/size.ts';
import { type PersistentReading, sendAndRead } from './persistentReader.ts';

const full = inFull('chat');

/**
 * `kill -9` at random moments of many turns. The chunks that each client has read are compared with the log and the
 * stored message.
 */
const turns = sizeOf('KILLED_TURNS', 25, 50);
const atOnce = 10;
const kills = sizeOf('TURN_KILLS', 3, 8);
/** With fewer kills the test proves nothing. */
const fewestKills = 2;
const tokens = 40;
const intervalMs = 20;
const expectedText = Array.from({ length: tokens }, (_, token) => `w${token} `).join('');

// Each kill costs a start, which takes long on a busy machine.
jest.setTimeout(600_000);

let product: TestProduct;

afterEach(async () => {
  await product.close();
});

it('Every turn ends once while the whole process is killed again and again', async () => {
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  const user = await product.user();
  const readings = await whileKilling(runTurns(user), async () => {
    await product.process.kill('SIGKILL');
    await product.restart();
  });
  await checkAll(user, readings);
});

full.it('Every turn ends once while only the worker is killed', async () => {
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  await product.process.stop();
  product.process = await startProduct(product.environment, 'api', { ATRIUM_API_CALLS_MODELS: 'false' });
  let worker: ProductProcess = await startProduct(product.environment, 'worker');
  const user = await product.user();
  const readings = await whileKilling(runTurns(user), async () => {
    await worker.kill('SIGKILL');
    worker = await startProduct(product.environment, 'worker');
  });
  await checkAll(user, readings);
  expect(readings.filter(({ reconnects }) => reconnects > 0)).toEqual([]);
  await worker.stop();
});

full.it('Every turn ends once while only the API is killed during its model calls', async () => {
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  await product.process.stop();
  product.process = await startProduct(product.environment, 'api');
  const worker = await startProduct(product.environment, 'worker');
  const user = await product.user();
  const kill = async () => {
    await product.process.kill('SIGKILL');
    product.process = await startProduct(product.environment, 'api');
  };
  const readings = await whileKilling(runTurns(user, turns / 2), kill, kills / 2);
  await checkAll(user, readings);
  await worker.stop();
});

/** Sends the messages, some of them to one thread, and reads every turn to its end. */
async function runTurns(user: ChatUser, count = turns): Promise<PersistentReading[]> {
  const readings: PersistentReading[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const number = next++;
      const content = fake({ tokens, intervalMs }, `message ${number}`);
      // Every fifth goes to a client's chat that all lanes share, so that turns queue too.
      const chat = number % 5 === 0 ? { id: 'shared chat' } : {};
      readings.push(await sendAndRead(user, { content, modelId: 'fake-1', outboxItemId: `item ${number}`, ...chat }));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return readings;
}

/**
 * Kills at random moments while the work goes on, but only `times` times, because a process has to live long enough to
 * end a turn.
 */
async function whileKilling<T>(work: Promise<T>, kill: () => Promise<void>, times = kills): Promise<T> {
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  // A failure of the work is reported at its await, after the killing has stopped.
  finished.catch(() => undefined);
  const random = seededRandom('kill');
  let killed = 0;
  while (killed < times && !done) {
    await delay(random(200, 1_500));
    if (done) break;
    await kill();
    killed++;
  }
  const result = await finished;
  expect(killed).toBeGreaterThanOrEqual(fewestKills);
  return result;
}

async function checkAll(user: ChatUser, readings: PersistentReading[]): Promise<void> {
  expect(new Set(readings.map(({ turnId }) => turnId)).size).toBe(readings.length);
  const { turnLog } = buildTurnLog(product.environment.database);
  for (const { turnId, lines } of readings) {
    const segments = await turnLog.read(turnId, 0, 100_000);
    const log = segments.flatMap((segment) => segment.lines.split('\n'));
    expect([...lines.keys()]).toEqual(log.map((_, index) => index + 1));
    expect([...lines.values()]).toEqual(log);
    const turn = await user.turn(turnId);
    expect(turn).toMatchObject({ status: 'completed', finishReason: 'stop', lastSeq: log.length });
    expect(turn.usage.outputTokens).toBe(tokens);
    expect(await user.answerOf(turn)).toBe(expectedText);
  }
  for (const threadId of new Set(readings.map((reading) => reading.threadId))) {
    const roles = (await user.messages(threadId)).map(({ role }) => role);
    expect(roles).toEqual(roles.map((_, index) => (index % 2 === 0 ? 'user' : 'assistant')));
  }
  await turnLog.close();
}
