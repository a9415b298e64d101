import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { checkRedis } from '../../../bin/support/checkParts.ts';
import { RedisNotices, turnsChannel } from '../../../integrations/redis/redisNotices.ts';
import { createLogger } from '../../../telemetry/logger.ts';
import { canHaveRedis, type RedisServer, startRedisServer } from '../../support/redisServer.ts';
import { waitFor } from '../../support/waitFor.ts';

const withRedis = canHaveRedis() ? describe : describe.skip;
const logger = createLogger({ level: 'silent' });
const opened: RedisNotices[] = [];

function open(url: string, { installation = 'here', listens = true } = {}) {
  const notices = new RedisNotices({ url, installation, logger, listens });
  opened.push(notices);
  const heard: string[] = [];
  const changes: boolean[] = [];
  notices.listen({
    onNotice: (turnId, lastSeq) => heard.push(`${turnId} ${lastSeq}`),
    onChange: () => changes.push(notices.areHeard),
  });
  return { notices, heard, changes };
}

afterEach(async () => {
  for (const notices of opened.splice(0)) await notices.close();
});

withRedis('over Redis', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedisServer();
  });

  afterAll(async () => {
    await redis.stop();
  });

  it('notices reach only listening processes of the same installation', async () => {
    const api = open(redis.url);
    const other = open(redis.url, { installation: 'elsewhere' });
    const worker = open(redis.url, { listens: false });
    const all = [api, other, worker];
    await waitFor('all connections', () => all.every(({ notices }) => notices.areHeard));
    for (let turn = 0; turn < 50; turn++) worker.notices.tell(`trn_${turn}`, turn + 1);
    await waitFor('the notices', () => api.heard.length === 50);
    expect(api.heard).toEqual(Array.from({ length: 50 }, (_, turn) => `trn_${turn} ${turn + 1}`));
    other.notices.tell('trn_other', 1);
    await waitFor('the other notice', () => other.heard.length > 0);
    expect(other.heard).toEqual(['trn_other 1']);
    expect(worker.heard).toEqual([]);
    // Notices store nothing in Redis.
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  it('malformed messages are ignored', async () => {
    const api = open(redis.url);
    await waitFor('the connection', () => api.notices.areHeard);
    for (const message of [
      '',
      '\n\n',
      'trn_a',
      'trn_a x',
      'trn_a 1.5',
      '=somebody',
      '{"a":1}',
      'x'.repeat(2_000_000),
      'trn_b 7',
    ]) {
      await redis.command('PUBLISH', turnsChannel('here'), message);
    }
    await waitFor('the last message', () => api.heard.includes('trn_b 7'));
    expect(api.heard.filter((line) => !line.startsWith(' '))).toEqual(['trn_b 7']);
  });

  it.each(['killed', 'frozen'] as const)('a connection reports that Redis is %s, and recovers', async (how) => {
    const api = open(redis.url);
    await waitFor('the connection', () => api.notices.areHeard);
    if (how === 'killed') await redis.kill();
    else redis.freeze();
    await waitFor('the loss', () => !api.notices.areHeard);
    await expect(api.notices.check()).rejects.toThrow();
    for (let turn = 0; turn < 20_000; turn++) api.notices.tell(`trn_${turn}`, 1);
    if (how === 'killed') await redis.restart();
    else redis.thaw();
    await waitFor('the recovery', () => api.notices.areHeard);
    await api.notices.check();
    api.notices.tell('trn_after', 2);
    await waitFor('the notice', () => api.heard.includes('trn_after 2'));
    expect(api.changes.slice(0, 3)).toEqual([true, false, true]);
  });

  it('a connection that never answers again is closed, and close works during the reconnect', async () => {
    const api = open(redis.url);
    await waitFor('the connection', () => api.notices.areHeard);
    redis.freeze();
    try {
      await waitFor('the loss', () => !api.notices.areHeard);
      await waitFor('the end of the connection', async () =>
        /closed|answer/.test(await api.notices.check().then(String, String)),
      );
      await api.notices.close();
    } finally {
      redis.thaw();
    }
  });

  it('doctor reports whether Redis works, without the password', async () => {
    const { password, port } = new URL(redis.url);
    const config = (url?: string) => ({ installation: 'here', redis: { url } });
    expect(await checkRedis(config(redis.url))).toEqual({ state: 'ok', detail: `redis://127.0.0.1:${port}` });
    expect(await checkRedis(config())).toMatchObject({ state: 'off' });
    const failure = await checkRedis(config(redis.url.replace(password, 'wrong-one'))).catch((error: Error) => error);
    expect(String(failure)).toMatch(/WRONGPASS/);
    expect(String(failure)).not.toMatch(/wrong-one/);
  });

  it('notices need only the rights in docs/operations.md', async () => {
    const rights = ['resetchannels', '&atrium:here:*', '-@all', '+@connection', '+publish', '+subscribe'];
    await redis.command('ACL', 'SETUSER', 'atrium', 'on', '>limited', ...rights);
    const { port } = new URL(redis.url);
    const api = open(`redis://atrium:limited@127.0.0.1:${port}`);
    await waitFor('the connection', () => api.notices.areHeard);
    api.notices.tell('trn_a', 1);
    await waitFor('the notice', () => api.heard.includes('trn_a 1'));
  });
});

it('a server that accepts the connection and never answers is reported', async () => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `redis://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const api = open(url);
  await waitFor('the error', async () => /answer/.test(await api.notices.check().then(String, String)));
  await api.notices.close();
  silent.close();
});
