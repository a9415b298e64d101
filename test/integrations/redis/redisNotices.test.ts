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

  it('tells the processes of its installation, and nobody else', async () => {
    const api = open(redis.url);
    const other = open(redis.url, { installation: 'elsewhere' });
    const worker = open(redis.url, { listens: false });
    const all = [api, other, worker];
    await waitFor('all to be there', () => all.every(({ notices }) => notices.areHeard));
    for (let turn = 0; turn < 50; turn++) worker.notices.tell(`trn_${turn}`, turn + 1);
    await waitFor('the notices', () => api.heard.length === 50);
    expect(api.heard).toEqual(Array.from({ length: 50 }, (_, turn) => `trn_${turn} ${turn + 1}`));
    other.notices.tell('trn_other', 1);
    await waitFor('its own', () => other.heard.length > 0);
    expect(other.heard).toEqual(['trn_other 1']);
    expect(worker.heard).toEqual([]);
    // Nothing is stored there.
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  it('takes nothing from a message that it does not understand', async () => {
    const api = open(redis.url);
    await waitFor('it to be there', () => api.notices.areHeard);
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
    await waitFor('the last one', () => api.heard.includes('trn_b 7'));
    expect(api.heard.filter((line) => !line.startsWith(' '))).toEqual(['trn_b 7']);
  });

  it.each(['killed', 'frozen'] as const)('says so when Redis is %s, and comes back with it', async (how) => {
    const api = open(redis.url);
    await waitFor('it to be there', () => api.notices.areHeard);
    if (how === 'killed') await redis.kill();
    else redis.freeze();
    await waitFor('the silence', () => !api.notices.areHeard);
    await expect(api.notices.check()).rejects.toThrow();
    for (let turn = 0; turn < 20_000; turn++) api.notices.tell(`trn_${turn}`, 1);
    if (how === 'killed') await redis.restart();
    else redis.thaw();
    await waitFor('its return', () => api.notices.areHeard);
    await api.notices.check();
    api.notices.tell('trn_after', 2);
    await waitFor('the notice', () => api.heard.includes('trn_after 2'));
    expect(api.changes.slice(0, 3)).toEqual([true, false, true]);
  });

  it('makes a new connection when the old one never answers again, and stops at once while it tries', async () => {
    const api = open(redis.url);
    await waitFor('it to be there', () => api.notices.areHeard);
    redis.freeze();
    try {
      await waitFor('the silence', () => !api.notices.areHeard);
      await waitFor('the end of its connection', async () =>
        /closed|answer/.test(await api.notices.check().then(String, String)),
      );
      await api.notices.close();
    } finally {
      redis.thaw();
    }
  });

  it('doctor says whether it works, and never shows the password', async () => {
    const { password, port } = new URL(redis.url);
    const config = (url?: string) => ({ installation: 'here', redis: { url } });
    expect(await checkRedis(config(redis.url))).toEqual({ state: 'ok', detail: `redis://127.0.0.1:${port}` });
    expect(await checkRedis(config())).toMatchObject({ state: 'off' });
    const failure = await checkRedis(config(redis.url.replace(password, 'wrong-one'))).catch((error: Error) => error);
    expect(String(failure)).toMatch(/WRONGPASS/);
    expect(String(failure)).not.toMatch(/wrong-one/);
  });

  it('needs no more rights than docs/operations.md says', async () => {
    const rights = ['resetchannels', '&atrium:here:*', '-@all', '+@connection', '+publish', '+subscribe'];
    await redis.command('ACL', 'SETUSER', 'atrium', 'on', '>limited', ...rights);
    const { port } = new URL(redis.url);
    const api = open(`redis://atrium:limited@127.0.0.1:${port}`);
    await waitFor('it to be there', () => api.notices.areHeard);
    api.notices.tell('trn_a', 1);
    await waitFor('the notice', () => api.heard.includes('trn_a 1'));
  });
});

it('gives up a server that takes the connection and says nothing', async () => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `redis://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const api = open(url);
  await waitFor('the reason', async () => /answer/.test(await api.notices.check().then(String, String)));
  await api.notices.close();
  silent.close();
});
