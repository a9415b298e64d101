import { createAppActivities } from '../../../activities/apps/index.ts';
import { newId } from '../../../base/ids.ts';
import { getAppOf } from '../../../models/apps/app.ts';
import { insertAttempt, noteTaken } from '../../../models/apps/attempts.ts';
import { placeOfRuns } from '../../../models/apps/placeOfRuns.ts';
import { getRun } from '../../../models/apps/run.ts';
import { transaction } from '../../../models/database/database.ts';
import { appsOf, webhookManifest } from '../../builders/app.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { insertRows } from '../../builders/rows.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('apps');

// Limits that keep the apps of one space from using up the storage and the run slots of others. No host runs here, so
// each run fails, and a run that retries in an hour stays unfinished.

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_APP_DELIVERIES_MIB: '2',
    ATRIUM_APP_RUNS_PER_SPACE: '2',
    ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: '20',
  });
});
afterAll(() => product.close());

const unending = { retry: { attempts: 2, delay: 3_600 } };
const body = 'x'.repeat(900_000);

async function setUp(manifest = webhookManifest('cat')) {
  const user = await buildChatUser(product);
  const apps = appsOf(product, user);
  return { user, apps, id: await apps.app(manifest) };
}

async function keptBytes(spaceId: string): Promise<number> {
  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT delivered_bytes AS bytes FROM app_usage WHERE space_id = ?', [spaceId]);
  return Number((rows as { bytes: string }[])[0]?.bytes);
}

full.test(
  'At the size limit, the oldest delivery bodies are dropped, and their ids are still not run twice',
  async () => {
    const { user, apps, id } = await setUp();
    const secret = await apps.secret(id);
    const sent = [];
    for (const name of ['msg_1', 'msg_2', 'msg_3', 'msg_4']) {
      const { status, body: answer } = await apps.deliver(id, { secret, id: name, body });
      expect([name, status]).toEqual([name, 200]);
      sent.push(answer.runId);
      await apps.ended(answer.runId);
    }
    const { data } = (await apps.deliveries(id)).body;
    expect(data.map(({ deliveryId, isKept }) => [deliveryId, isKept])).toEqual([
      ['msg_4', true],
      ['msg_3', true],
      ['msg_2', false],
      ['msg_1', false],
    ]);
    expect(await keptBytes(user.spaceId)).toBeGreaterThan(1_800_000);
    expect(await keptBytes(user.spaceId)).toBeLessThan(2_097_152);
    expect((await apps.deliver(id, { secret, id: 'msg_1', body })).body.runId).toBe(sent[0]);
    expect(await apps.replay(data[3]?.id ?? '')).toMatchObject({ status: 410, body: { code: 'DELIVERY_GONE' } });
    // Other spaces have a limit of their own, and removing an app frees its share.
    const other = await setUp(webhookManifest('cat', { auth: 'none' }));
    expect((await other.apps.deliver(other.id, { body })).status).toBe(200);
    await apps.remove(id);
    await waitFor('the bytes of the removed app to be freed', async () => (await keptBytes(user.spaceId)) === 0);
  },
);

test('Bodies of unfinished runs are never dropped: a delivery over the limit gets 429, and its id stays unused', async () => {
  const { apps, id } = await setUp(webhookManifest('cat', { ...unending, concurrency: 20 }));
  const secret = await apps.secret(id);
  const [first] = [await apps.deliver(id, { secret, body }), await apps.deliver(id, { secret, body })];
  const late = { secret, id: 'msg_late', body };
  const refused = await apps.deliver(id, late);
  expect(refused).toMatchObject({ status: 429, body: { code: 'APP_DELIVERIES_FULL' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  await apps.cancel(first.body.runId);
  await apps.ended(first.body.runId);
  expect((await apps.deliver(id, late)).body.message).toContain('started a run');
  expect((await apps.deliveries(id)).body.data.map(({ isKept }) => isKept)).toEqual([true, true, false]);
});

test('Without authentication, the same id with another body is another delivery', async () => {
  const { apps, id } = await setUp(webhookManifest('cat', { auth: 'none' }));
  const named = (text: string) => apps.deliver(id, { id: 'msg_1', body: text });
  const [mine, again, forged] = [await named('mine'), await named('mine'), await named('forged')];
  expect(again.body.runId).toBe(mine.body.runId);
  expect(forged.status).toBe(200);
  expect(forged.body.runId).not.toBe(mine.body.runId);
  expect((await named('mine')).body.runId).toBe(mine.body.runId);
  // Without authentication, ids are forgotten together with their bodies.
  for (const { body: answer } of [mine, forged]) await apps.ended(answer.runId);
  for (const text of ['1', '2', '3']) await apps.ended((await apps.deliver(id, { body: body + text })).body.runId);
  expect((await apps.deliveries(id)).body.data.map(({ deliveryId }) => deliveryId)).toEqual([null, null]);
});

test('A space runs a limited number of runs at once, and other spaces do not wait for them', async () => {
  const manifest = webhookManifest('cat', { ...unending, auth: 'none', concurrency: 20 });
  const { apps, id } = await setUp(manifest);
  const second = await apps.app(manifest);
  const { database } = product.environment;
  const statusOf = async (runId: string) => (await getRun(database, runId)).status;
  const deliver = async (itemId: string) => (await apps.deliver(itemId)).body.runId;
  const [one, two] = [await deliver(id), await deliver(second)];
  // Both wait for a retry, so cancelling them takes effect at once.
  await waitFor('the first two runs to wait for a retry', async () => {
    const both = [await getRun(database, one), await getRun(database, two)];
    return both.every(({ status, retryAt }) => status === 'running' && retryAt !== null);
  });
  const [three, four] = [await deliver(id), await deliver(second)];
  const waiting = async () => {
    const sql = 'SELECT id FROM app_runs WHERE waits_for_space = 1 AND id IN (?)';
    return ((await database.pool.query(sql, [[three, four]]))[0] as unknown[]).length;
  };
  await waitFor('the other two runs to wait for the space', async () => (await waiting()) === 2);
  expect([await statusOf(three), await statusOf(four)]).toEqual(['queued', 'queued']);
  const other = await setUp(manifest);
  const free = (await other.apps.deliver(other.id)).body.runId;
  await waitFor('the run of the other space', async () => (await other.apps.getRun(free)).body.status === 'running');

  // A waiting run starts at once, long before its next look, also when the run that ended is another app's.
  await apps.cancel(two);
  await waitFor('the oldest waiting run', async () => (await statusOf(three)) === 'running');
  expect([await statusOf(four), await waiting()]).toEqual(['queued', 1]);
  for (const runId of [four, three, one]) await apps.cancel(runId);
  expect((await apps.ended(four)).status).toBe('cancelled');
  expect(await waiting()).toBe(0);
});

test('An attempt that no worker has taken does not time out', async () => {
  const { user, apps, id } = await setUp(webhookManifest('cat', { ...unending, auth: 'none' }));
  const { database } = product.environment;
  const app = await getAppOf(database, id);
  const runId = newId('run');
  // Nothing else touches this run: it has no workflow, and the sweeper does not find it yet.
  await insertRows(database, {
    app_runs: {
      id: runId,
      app_id: app.id,
      item_id: id,
      space_id: user.spaceId,
      component: 'hook',
      spec: JSON.stringify({
        kind: 'webhook',
        concurrency: 1,
        timeoutSeconds: 60,
        retry: { attempts: 2, delaySeconds: 3_600 },
        place: await placeOfRuns(database, app),
      }),
      trigger_kind: 'request',
      user_id: user.id,
      status: 'running',
      active: 1,
      attempt: 1,
      is_started: 0,
      created_at: new Date(Date.now() + 3_600_000),
    },
  });
  await transaction(database, async (tx) => insertAttempt(tx, await getRun(database, runId)));
  const deps = { ...product.environment, database, liveComputers: undefined, workflows: {} } as never;
  const { failAppRunAttempt } = createAppActivities(deps);
  const late = { runId, attempt: 1, code: 'TIMED_OUT' };
  const attemptOf = async () =>
    (await apps.send<{ attempts: { status: string }[] }>('GET', `/api/runs/${runId}/timeline`)).body.attempts[0];
  await failAppRunAttempt(late);
  expect((await attemptOf())?.status).toBe('running');
  await noteTaken(database, await getRun(database, runId));
  await failAppRunAttempt(late);
  expect((await attemptOf())?.status).toBe('failed');
  await apps.cancel(runId);
  await apps.ended(runId);
});

test('Past the rate limit, unsigned deliveries no longer cause the manifest to be read', async () => {
  const { apps, id } = await setUp();
  await apps.secret(id);
  const unsigned = () => apps.deliver(id, { headers: { 'webhook-id': 'msg_1' } });
  // The manifest may no longer ask for a signature, so an unsigned delivery has it read, up to the address's limit.
  for (let count = 0; count < 20; count++) await unsigned();
  expect(await unsigned()).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  const { database } = product.environment;
  const before = await getAppOf(database, id);
  await apps.put(id, 'atrium.yaml', webhookManifest('cat', { auth: 'none' }));
  expect((await unsigned()).status).toBe(429);
  expect((await getAppOf(database, id)).manifestTag).toBe(before.manifestTag);
  // Once the app is known to take unsigned deliveries, they are accepted.
  await apps.get(id);
  expect((await unsigned()).status).toBe(200);
});
