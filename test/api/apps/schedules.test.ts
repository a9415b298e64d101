import { getAppOf } from '../../../models/apps/app.ts';
import { takeDueRun } from '../../../models/apps/dueRun.ts';
import { considerContent } from '../../../models/apps/takeVersion.ts';
import { appsOf, manifestOf, scheduleManifest } from '../../builders/app.ts';
import { asUser, buildChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('apps');

// No host runs here, so each run fails, and a run that retries in an hour stays unfinished.

let product: TestProduct;
beforeAll(async () => {
  product = await buildProduct(hurriedSweeper);
});
afterAll(() => product.close());

const hourMs = 3_600_000;
const limits = { catchUpMs: 6 * hourMs, aheadMs: 0 };
const unending = { retry: { attempts: 2, delay: 3_600 } };

async function setUp(manifest = scheduleManifest('true')) {
  const user = await buildChatUser(product);
  const apps = appsOf(product, user);
  const id = await apps.app(manifest);
  const { database } = product.environment;
  const [rows] = await database.pool.query('SELECT id FROM app_schedules WHERE item_id = ?', [id]);
  const scheduleId = (rows as { id: string }[])[0]?.id ?? '';
  return {
    ...{ user, apps, id, scheduleId },
    schedule: async () => (await apps.schedules(id)).body.data[0],
    dueSince: async (msAgo: number) => {
      const at = new Date(Date.now() - msAgo);
      await database.pool.query('UPDATE app_schedules SET next_at = ?, due_at = ? WHERE id = ?', [at, at, scheduleId]);
    },
    runs: async () => (await apps.runs(id)).body.data,
  };
}

test('A tick whose component names an unknown environment is skipped, and says so', async () => {
  const { scheduleId, schedule, dueSince, runs } = await setUp(scheduleManifest('true', { environment: 'gone' }));
  await dueSince(1_000);
  expect(await takeDueRun(product.environment, scheduleId, limits)).toEqual({});
  expect((await schedule())?.last).toMatchObject({ code: 'APP_ENVIRONMENT_UNKNOWN', runId: null });
  expect(await runs()).toEqual([]);
});

test('Schedules come from the manifest, and can be paused and resumed', async () => {
  const component = { command: 'true', timeZone: 'Europe/Berlin', cron: '30 2 * * *' };
  const { user, apps, id } = await setUp(scheduleManifest('true', { ...component, overlap: 'queue', jitter: 60 }));
  const [made] = (await apps.schedules(id)).body.data;
  expect(made).toMatchObject({
    ...{ component: 'nightly', cron: '30 2 * * *', timeZone: 'Europe/Berlin', overlap: 'queue', jitterSeconds: 60 },
    ...{ enabled: true, pause: null, failures: 0, last: null },
  });
  const seconds = new Date(made?.nextRunAt ?? 0).getTime() / 1_000;
  // The delay by jitter is fixed for each schedule, and at most 60 s here.
  expect(seconds % 1_800).toBeLessThanOrEqual(60);
  expect(await apps.pause(id)).toMatchObject({
    status: 200,
    body: { enabled: false, nextRunAt: null, pause: { code: 'PAUSED' } },
  });
  // A paused schedule stays paused when its time changes.
  await apps.put(id, 'atrium.yaml', scheduleManifest('true', { ...component, cron: '0 4 * * *' }));
  expect((await apps.schedules(id)).body.data).toMatchObject([{ cron: '0 4 * * *', enabled: false, nextRunAt: null }]);
  const resumed = await apps.resume(id);
  expect(resumed.body).toMatchObject({ enabled: true, pause: null, nextRunAt: expect.stringContaining(':00:00.000Z') });
  expect((await apps.resume(id)).body).toEqual(resumed.body);
  const audit = await user.get<{ data: { action: string; target: string }[] }>(`${apps.space}/audit`);
  expect(audit.data.filter(({ target }) => target === `${id}/nightly`).map(({ action }) => action)).toEqual([
    'app.schedule-resumed',
    'app.schedule-paused',
  ]);
  expect(await apps.pause(id, 'none')).toMatchObject({ status: 404 });
  // An invalid manifest changes nothing. A manifest without the schedule removes it.
  await apps.put(id, 'atrium.yaml', 'name: x\n');
  expect((await apps.schedules(id)).body.data).toHaveLength(1);
  await apps.put(id, 'atrium.yaml', manifestOf('true'));
  expect((await apps.schedules(id)).body.data).toEqual([]);
  expect(await apps.resume(id)).toMatchObject({ status: 404 });
});

test('A key cannot resume a schedule that would run with more scopes than the key has', async () => {
  const { user, apps, id } = await setUp();
  const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes: ['apps:write'] } });
  const { key } = (await made.json()) as { key: string };
  const byKey = appsOf(product, asUser(product, { ...user, token: key }));
  expect((await byKey.pause(id)).status).toBe(200);
  expect(await byKey.resume(id)).toMatchObject({ status: 403, body: { code: 'INSUFFICIENT_SCOPE' } });
  expect((await apps.resume(id)).status).toBe(200);
});

test('A tick that is due when the manifest changes is run, or reported as missed', async () => {
  const hour = new Date().getUTCHours();
  const cron = `*/5 ${(hour + 22) % 24},${(hour + 23) % 24} * * *`;
  const kept = await setUp(scheduleManifest('true', { cron }));
  const lost = await setUp(scheduleManifest('true', { cron }));
  await kept.apps.put(kept.id, 'atrium.yaml', scheduleManifest('true', { cron, jitter: 1 }));
  await lost.apps.put(lost.id, 'atrium.yaml', scheduleManifest('true'));
  await kept.dueSince(2 * hourMs);
  await lost.dueSince(2 * hourMs);
  await waitFor('the tick of the kept schedule to run', async () => (await kept.runs()).length === 1);
  const last = await waitFor('the tick of the lost schedule to be reported', async () => (await lost.schedule())?.last);
  expect(last).toMatchObject({ code: 'MISSED', runId: null });
  expect(await lost.runs()).toEqual([]);
});

test('A due tick runs once, also when ten callers take it at the same time', async () => {
  const { apps, id, scheduleId, schedule, dueSince, runs } = await setUp();
  await dueSince(1_000);
  const taken = await Promise.all(
    Array.from({ length: 10 }, () => takeDueRun(product.environment, scheduleId, limits)),
  );
  expect(taken.filter(({ run }) => run !== undefined).length).toBeLessThanOrEqual(1);
  const [run, ...more] = await waitFor('the run', async () => {
    const found = await runs();
    return found.length > 0 && found;
  });
  expect([run?.trigger, more]).toEqual(['schedule', []]);
  expect((await apps.ended(run?.id ?? '')).status).toBe('failed');
  const now = await schedule();
  expect(now).toMatchObject({ failures: 1, last: { runId: run?.id, code: null } });
  expect(Date.parse(now?.nextRunAt ?? '')).toBeGreaterThan(Date.now());
  // A run on request does not count for the schedule.
  const asked = await apps.run(id, { component: 'nightly' });
  expect(await apps.ended(asked.body.runId)).toMatchObject({ trigger: 'request' });
  expect(await schedule()).toMatchObject({ failures: 1, last: { runId: run?.id } });
});

test('After an outage, missed ticks cause one run, and ticks that are too old cause none', async () => {
  const hour = new Date().getUTCHours();
  const often = await setUp(scheduleManifest('true', { cron: `*/5 ${(hour + 22) % 24},${(hour + 23) % 24} * * *` }));
  const rare = await setUp();
  await often.dueSince(2 * hourMs);
  await rare.dueSince(7 * hourMs);
  const last = await waitFor('both ticks', async () => {
    const [one, two] = [(await often.schedule())?.last, (await rare.schedule())?.last];
    return one && two && { one, two };
  });
  expect(last.one).toMatchObject({ code: null, runId: expect.any(String) });
  expect(Date.now() - Date.parse(last.one.scheduledAt)).toBeLessThan(2 * hourMs);
  expect(last.two).toMatchObject({ code: 'MISSED', runId: null });
  expect([(await often.runs()).length, (await rare.runs()).length]).toEqual([1, 0]);
});

full.test('Five failures in a row pause a schedule with a reason, and resuming it resets the count', async () => {
  const { apps, id, schedule, dueSince } = await setUp();
  for (let failures = 1; failures <= 5; failures++) {
    await dueSince(failures * 1_000);
    await waitFor(`failure ${failures}`, async () => (await schedule())?.failures === failures);
  }
  expect(await schedule()).toMatchObject({
    ...{ enabled: false, nextRunAt: null },
    pause: {
      code: 'FAILED_REPEATEDLY',
      detail: expect.stringMatching(/^The schedule was paused after 5 failures in a row\. \S/),
    },
  });
  expect((await apps.resume(id)).body).toMatchObject({ enabled: true, failures: 0, pause: null });
});

test.each([
  ['skip', ['running'], 'OVERLAP'],
  ['queue', ['queued', 'running'], null],
  ['interrupt', ['running', 'cancelled'], null],
])('A tick during an unfinished run follows the overlap policy %s', async (overlap, statuses, code) => {
  const { apps, schedule, dueSince, runs } = await setUp(scheduleManifest('true', { ...unending, overlap }));
  await dueSince(2_000);
  await waitFor('the first run', async () => (await runs())[0]?.error !== null && (await runs()).length === 1);
  const before = (await schedule())?.last?.scheduledAt;
  await dueSince(1_000);
  await waitFor('the second tick', async () => (await schedule())?.last?.scheduledAt !== before);
  await waitFor(statuses.join(), async () => (await runs()).map(({ status }) => status).join() === statuses.join());
  expect((await schedule())?.last?.code).toBe(code);
  for (const { id, endedAt } of await runs()) if (endedAt === null) await apps.cancel(id);
});

test('A paused schedule is still paused after the manifest dropped it and brought it back', async () => {
  const manifest = scheduleManifest('true');
  const { apps, id, schedule } = await setUp(manifest);
  await apps.pause(id);
  const { pause } = (await schedule()) ?? {};
  // As by switching to another branch and back.
  await apps.put(id, 'atrium.yaml', manifestOf('true'));
  expect(await schedule()).toBeUndefined();
  expect(await apps.resume(id)).toMatchObject({ status: 404 });
  await apps.put(id, 'atrium.yaml', manifest);
  expect(await schedule()).toMatchObject({ enabled: false, nextRunAt: null, pause });
  await apps.resume(id);
  await apps.put(id, 'atrium.yaml', manifestOf('true'));
  expect(await schedule()).toBeUndefined();
  await apps.put(id, 'atrium.yaml', manifest);
  expect(await schedule()).toMatchObject({ enabled: true, nextRunAt: expect.any(String), pause: null });

  // A process that read an older manifest does not write it back.
  const { database } = product.environment;
  const app = await getAppOf(database, id);
  const content = { manifest: { name: 'App', components: [] }, manifestTag: 'late', files: {} };
  await considerContent(database, { ...app, versionId: 'ver_before' }, { content, changes: [] });
  expect(await getAppOf(database, id)).toEqual(app);
  expect(await schedule()).toMatchObject({ enabled: true });
});

test('An app that is in the trash or removed runs nothing', async () => {
  const { user, apps, id, schedule, dueSince, runs, scheduleId } = await setUp();
  const items = `/api/spaces/${user.spaceId}/drive/items/${id}`;
  await user.fetch(items, { method: 'DELETE' });
  await dueSince(1_000);
  const { pool } = product.environment.database;
  await waitFor('the tick', async () => {
    const [rows] = await pool.query('SELECT last_code AS code FROM app_schedules WHERE id = ?', [scheduleId]);
    return (rows as { code: string | null }[])[0]?.code === 'APP_IN_TRASH';
  });
  await user.fetch(`${items}/restore`, { method: 'POST' });
  expect([await runs(), (await schedule())?.last?.runId]).toEqual([[], null]);
  await apps.remove(id);
  await dueSince(1_000);
  await waitFor('the schedule to be gone', async () => {
    const [rows] = await pool.query('SELECT id FROM app_schedules WHERE id = ?', [scheduleId]);
    return (rows as unknown[]).length === 0;
  });
  const [left] = await pool.query('SELECT id FROM app_runs WHERE item_id = ?', [id]);
  expect(left).toEqual([]);
});
