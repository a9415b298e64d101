import { turnsChannel } from '../../integrations/redis/redisNotices.ts';
import { asUser, type ChatUser } from '../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { buildTurnLog } from '../builders/turnLog.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { canHaveRedis, type RedisServer, startRedisServer } from '../support/redisServer.ts';
import { waitFor } from '../support/waitFor.ts';
import { type PersistentReading, sendAndRead } from './persistentReader.ts';

const withRedis = canHaveRedis() ? describe : describe.skip;
const streams = 6;
const words = Array.from({ length: 600 }, (_, word) => `w${word} `);

withRedis('two APIs and two workers that tell each other over Redis', () => {
  let redis: RedisServer;
  let product: TestProduct;
  let processes: ProductProcess[] = [];
  /** The same person at each API. */
  let users: ChatUser[];

  beforeAll(async () => {
    redis = await startRedisServer();
    // The workers write, and the APIs read.
    product = await buildProduct({
      ...hurriedSweeper,
      ATRIUM_REDIS_URL: redis.url,
      ATRIUM_API_CALLS_MODELS: 'false',
    });
    const user = await product.user();
    await product.process.stop();
    const roles = ['api', 'api', 'worker', 'worker'] as const;
    processes = await Promise.all(roles.map((role) => startProduct(product.environment, role)));
    users = processes.slice(0, 2).map(({ apiUrl }) => asUser({ url: apiUrl }, user));
  });

  afterAll(async () => {
    await Promise.all(processes.map((process) => process.stop()));
    await product.close();
    await redis.stop();
  });

  const disturbances: Record<string, () => Promise<void>> = {
    'is killed and comes back': async () => {
      await redis.kill();
      await untilNoticed();
      await redis.restart();
    },
    'freezes and thaws': async () => {
      redis.freeze();
      await untilNoticed();
      redis.thaw();
    },
    'is flushed, and drops its clients': async () => {
      await redis.command('FLUSHALL');
      await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    },
    lies: async () => {
      const [rows] = await product.environment.database.pool.query('SELECT id FROM turns WHERE terminal = 0');
      const ids = (rows as { id: string }[]).map(({ id }) => id);
      for (const seq of [1_000_000, 3, 1, 50, 0, -1, 7, 1_000_000, 2]) {
        const lines = ids.map((id) => `${id} ${seq}`).join('\n');
        await redis.command('PUBLISH', turnsChannel(product.environment.config.installation), lines);
      }
    },
  };

  it.each(Object.keys(disturbances))('Every stream gets its whole log in order when Redis %s', async (name) => {
    const readings = Array.from({ length: streams }, (_, index) => {
      const body = {
        content: fake({ tokens: words, intervalMs: 15 }),
        modelId: 'fake-1',
        outboxItemId: `${name}-${index}`,
      };
      return sendAndRead(users[index % 2] as ChatUser, body);
    });
    // If the disturbance fails, the readings must not become unhandled rejections.
    const all = Promise.all(readings);
    all.catch(() => undefined);
    await waitFor('the streams to flow', async () => (await said()) >= streams * 20);
    await disturbances[name]?.();
    for (const reading of await all) await expectLog(reading);
    // A resumed stream goes on at its position, also at the other API.
    const { turnId } = (await readings[0]) as PersistentReading;
    const resumed = await users[1]?.open(`/chat/turns/${turnId}/stream`, { lastEventId: 123 });
    for await (const { id } of resumed?.events ?? []) {
      expect(id).toBe(124);
      break;
    }
    resumed?.abort();
    await waitFor('Redis to be in use again', () => areAll('ready'));
  });

  /** The number of chunks in the logs of running turns. */
  async function said(): Promise<number> {
    const [rows] = await product.environment.database.pool.query(
      `SELECT CAST(SUM(s.last_seq - s.first_seq + 1) AS SIGNED) AS n FROM turn_segments s JOIN turns t ON t.id = s.turn_id
        WHERE t.terminal = 0`,
    );
    return (rows as { n: number | null }[])[0]?.n ?? 0;
  }

  /** Waits until the APIs have noticed that Redis is silent. */
  const untilNoticed = () => waitFor('the APIs to notice', () => areAll('degraded'));

  async function areAll(status: 'ready' | 'degraded'): Promise<boolean> {
    const answers = await Promise.all(users.map((user) => user.get<{ status: string }>('/readyz')));
    return answers.every((answer) => answer.status === status);
  }

  async function expectLog({ turnId, lines }: PersistentReading): Promise<void> {
    const { turnLog } = buildTurnLog(product.environment.database);
    const segments = await turnLog.read(turnId, 0, 100_000);
    expect([...lines.values()].join('\n')).toBe(segments.map((segment) => segment.lines).join('\n'));
    expect([...lines.keys()]).toEqual(Array.from(lines, (_, index) => index + 1));
    const text = [...lines.values()].map((line) => (JSON.parse(line) as { delta?: string }).delta ?? '').join('');
    expect(text).toBe(words.join(''));
    await turnLog.close();
  }
});
