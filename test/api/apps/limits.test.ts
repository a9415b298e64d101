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
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// What keeps the apps of one space from taking the room and the places of others. Nothing runs computers here, so a run
// fails, and one that is to be tried again in an hour has not ended.

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_APP_DELIVERIES_MIB: '2',
    ATRIUM_APP_RUNS_PER_SPACE: '2',
    ATRIUM_RATE_LIMIT_ANONYMOUS_PER_MINUTE: '20',
  });
}, 60_000);
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

test('what was delivered has room within a limit: the oldest goes first, and is still not run twice', async () => {
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
  // Other spaces have room of their own, and a removed app leaves its own to others.
  const other = await setUp(webhookManifest('cat', { auth: 'none' }));
  expect((await other.apps.deliver(other.id, { body })).status).toBe(200);
  await apps.remove(id);
  await waitFor('its room', async () => (await keptBytes(user.spaceId)) === 0);
}, 120_000);

test('what is still to run is never forgotten: then a delivery is refused, and uses up no id', async () => {
  const { apps, id } = await setUp(webhookManifest('cat', { ...unending, concurrency: 20 }));
  const secret = await apps.secret(id);
  const [first] = [await apps.deliver(id, { secret, body }), await apps.deliver(id, { secret, body })];
  const late = { secret, id: 'msg_late', body };
  const refused = await apps.deliver(id, late);
  expect(refused).toMatchObject({ status: 429, body: { code: 'APP_DELIVERIES_FULL' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  await apps.cancel(first.body.runId);
  await apps.ended(first.body.runId);
  expect((await apps.deliver(id, late)).body.message).toContain('runs');
  expect((await apps.deliveries(id)).body.data.map(({ isKept }) => isKept)).toEqual([true, true, false]);
}, 120_000);

test('where anybody may send, an id is used up by nobody else', async () => {
  const { apps, id } = await setUp(webhookManifest('cat', { auth: 'none' }));
  const named = (text: string) => apps.deliver(id, { id: 'msg_1', body: text });
  const [mine, again, forged] = [await named('mine'), await named('mine'), await named('forged')];
  expect(again.body.runId).toBe(mine.body.runId);
  expect(forged.status).toBe(200);
  expect(forged.body.runId).not.toBe(mine.body.runId);
  expect((await named('mine')).body.runId).toBe(mine.body.runId);
  // Names that anybody may send go with what they brought.
  for (const { body: answer } of [mine, forged]) await apps.ended(answer.runId);
  for (const text of ['1', '2', '3']) await apps.ended((await apps.deliver(id, { body: body + text })).body.runId);
  expect((await apps.deliveries(id)).body.data.map(({ deliveryId }) => deliveryId)).toEqual([null, null]);
}, 120_000);

test('a space runs so many at once; those of others do not wait for it', async () => {
  const manifest = webhookManifest('cat', { ...unending, auth: 'none', concurrency: 20 });
  const { apps, id } = await setUp(manifest);
  const second = await apps.app(manifest);
  const { database } = product.environment;
  const statusOf = async (runId: string) => (await getRun(database, runId)).status;
  const deliver = async (itemId: string) => (await apps.deliver(itemId)).body.runId;
  const [one, two] = [await deliver(id), await deliver(second)];
  // They wait to be tried again, so that whoever ends them has not to wait for anything.
  await waitFor('the first two', async () => {
    const both = [await getRun(database, one), await getRun(database, two)];
    return both.every(({ status, retryAt }) => status === 'running' && retryAt !== null);
  });
  const [three, four] = [await deliver(id), await deliver(second)];
  const waiting = async () => {
    const sql = 'SELECT id FROM app_runs WHERE waits_for_space = 1 AND id IN (?)';
    return ((await database.pool.query(sql, [[three, four]]))[0] as unknown[]).length;
  };
  await waitFor('the others to wait', async () => (await waiting()) === 2);
  expect([await statusOf(three), await statusOf(four)]).toEqual(['queued', 'queued']);
  const other = await setUp(manifest);
  const free = (await other.apps.deliver(other.id)).body.runId;
  await waitFor('a run of others', async () => (await other.apps.getRun(free)).body.status === 'running');

  // It is told at once, long before it would look again, also where the one that ends is another app's.
  await apps.cancel(two);
  await waitFor('the oldest of those that wait', async () => (await statusOf(three)) === 'running');
  expect([await statusOf(four), await waiting()]).toEqual(['queued', 1]);
  for (const runId of [four, three, one]) await apps.cancel(runId);
  expect((await apps.ended(four)).status).toBe('cancelled');
  expect(await waiting()).toBe(0);
}, 120_000);

test('an attempt that no worker had room for is not over when its time is', async () => {
  const { user, apps, id } = await setUp(webhookManifest('cat', { ...unending, auth: 'none' }));
  const { database } = product.environment;
  const app = await getAppOf(database, id);
  const runId = newId('run');
  // Nobody else has to do with it: it has no workflow, and the sweeper does not find it yet.
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

test('for those who sign nothing right, no manifest is read for long', async () => {
  const { apps, id } = await setUp();
  await apps.secret(id);
  const unsigned = () => apps.deliver(id, { headers: { 'webhook-id': 'msg_1' } });
  // It may need no signature any more, so it is looked at; but not for as often as an address likes.
  for (let count = 0; count < 20; count++) await unsigned();
  expect(await unsigned()).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } });
  const { database } = product.environment;
  const before = await getAppOf(database, id);
  await apps.put(id, 'atrium.yaml', webhookManifest('cat', { auth: 'none' }));
  expect((await unsigned()).status).toBe(429);
  expect((await getAppOf(database, id)).manifestTag).toBe(before.manifestTag);
  // When it is known to take what anybody sends, it does.
  await apps.get(id);
  expect((await unsigned()).status).toBe(200);
});
