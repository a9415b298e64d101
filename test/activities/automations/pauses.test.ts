import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { automationsOf, deliver } from '../../builders/automations.ts';
import { buildCredits } from '../../builders/billing.ts';
import { asUser, type ChatUser } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { toolLines } from '../../builders/tools.ts';
import { type FakePushService, startFakePushService } from '../../fakes/pushService.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('automations');

// An automation acts as its author. It pauses itself when its author loses the right to run it, or when it fails
// repeatedly.

const modelsFile = join(temporaryFolder(), 'models.json');
const pricingRates = [{ label: 'Request', creditsPerUnit: 1, unit: 'request' }];
const models = [
  { id: 'fake-1', provider: 'compatible' },
  { id: 'paid', provider: 'compatible', pricingRates },
];
writeFileSync(modelsFile, JSON.stringify({ models }));

let product: TestProduct;
let service: FakePushService;
beforeAll(async () => {
  service = await startFakePushService();
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_EGRESS_ALLOW_INTERNAL: new URL(service.url).host,
    ATRIUM_MODELS_FILE: modelsFile,
    ATRIUM_BILLING_ENFORCED: 'true',
    ATRIUM_AUTOMATIONS_PER_SPACE: '2',
    ATRIUM_AUTOMATION_RUNS_PER_DAY: '8',
  });
});
afterAll(async () => {
  await product.close();
  await service.stop();
});

let devices = 0;
/** A user with a device. `pushed` waits for a push of a type to the device. */
async function withDevice() {
  const user = await product.user();
  const device = `automation-device-${++devices}`;
  const { subscription } = service.device(device);
  await user.fetch('/api/push/subscriptions', { method: 'POST', body: subscription });
  const pushed = (type: string) =>
    waitFor(`a push of ${type}`, () =>
      service.received.find((push) => push.device === device && push.payload.type === type),
    );
  return { user, own: automationsOf(user), pushed };
}

/** Another editor of the user's space, and their automations in it. */
async function editorOf(user: ChatUser) {
  const editor = await product.user();
  await product.identity.members.add(user.spaceId, editor.email, 'editor');
  const here = asUser(product, { ...editor, spaceId: user.spaceId });
  return { editor: here, own: automationsOf(here) };
}

const paused = (own: ReturnType<typeof automationsOf>, id: string) =>
  waitFor('the automation to pause itself', async () => {
    const automation = await own.get(id);
    return automation.pause !== null && automation;
  });

test('Five failures in a row pause an automation and notify its owner, and enabling it resets the count', async () => {
  const { own, pushed } = await withDevice();
  const made = await own.make({
    prompt: fake({ status: 400 }),
    modelId: 'fake-1',
    schedule: { cron: '0 8 * * *', timeZone: 'UTC' },
  });
  for (let count = 1; count <= 5; count++) {
    await own.run(made.id);
    expect((await own.ended(made.id, count))[0]).toMatchObject({
      status: 'failed',
      error: { code: expect.any(String) },
    });
  }
  expect(await paused(own, made.id)).toMatchObject({
    ...{ enabled: false, failures: 5, nextRunAt: null },
    pause: { code: 'FAILED_REPEATEDLY', detail: expect.stringContaining('after 5 failures in a row') },
  });
  expect((await pushed('automation.paused')).payload).toMatchObject({ automationId: made.id, title: 'Report' });
  const again = await own.change(made.id, { enabled: true, prompt: '/say better', modelId: 'demo' });
  expect(again).toMatchObject({ enabled: true, failures: 0, pause: null, nextRunAt: expect.any(String) });
});

full.test('A successful run resets the count of failures', async () => {
  const { own } = await withDevice();
  const made = await own.make({ prompt: fake({ status: 400 }), modelId: 'fake-1' });
  for (let count = 1; count <= 4; count++) {
    await own.run(made.id);
    await own.ended(made.id, count);
  }
  await own.change(made.id, { prompt: '/say fine', modelId: 'demo' });
  await own.run(made.id);
  await own.ended(made.id, 5);
  await waitFor('the count of failures to be zero', async () => (await own.get(made.id)).failures === 0);
});

test('A run costs as much as its turn, and runs without credits fail until the automation pauses', async () => {
  const { user, own } = await withDevice();
  await buildCredits(product.environment.database, 2, user.spaceId);
  const made = await own.make({ prompt: 'What is new?', modelId: 'paid' });
  for (let count = 1; count <= 7; count++) {
    await own.run(made.id);
    await own.ended(made.id, count);
  }
  const refused = { status: 'failed', turnId: null, error: { code: 'CREDITS_EXHAUSTED' } };
  expect((await own.runs(made.id)).slice(0, 5)).toMatchObject([refused, refused, refused, refused, refused]);
  expect(await paused(own, made.id)).toMatchObject({ cost: 2, pause: { code: 'FAILED_REPEATEDLY' } });
  expect((await own.runs(made.id)).slice(5)).toMatchObject([
    { status: 'completed', cost: 1 },
    { status: 'completed', cost: 1 },
  ]);
});

test('The owner of a run that waits for approval gets a push and can approve', async () => {
  const { user, own, pushed } = await withDevice();
  await user.ask({
    content: toolLines([['drive_write', { path: '/a.txt', content: 'x' }]]),
    modelId: 'demo',
    mode: 'work',
  });
  const made = await own.make({ mode: 'work', prompt: '/tool drive_delete {"path":"/a.txt"}' });
  await own.run(made.id);
  expect((await pushed('turn.waiting')).payload).toMatchObject({ threadId: made.threadId, title: 'Report' });
  const [run] = await own.runs(made.id);
  expect(run?.status).toBe('waiting');
  const { pendingToolCalls } = await user.turn(run?.turnId ?? '');
  const [call] = pendingToolCalls;
  const path = `/chat/turns/${run?.turnId}/approvals/${call?.toolCallId}`;
  await user.fetch(path, { method: 'POST', body: { approved: true } });
  expect(await own.ended(made.id)).toMatchObject([{ status: 'completed' }]);
  expect((await pushed('turn.completed')).payload).toMatchObject({ turnId: run?.turnId });
});

full.test.each([
  ['has left', 'AUTHOR_LEFT', (user: ChatUser, id: string) => product.identity.members.remove(user.spaceId, id)],
  [
    'may only read now',
    'ROLE_TOO_LOW',
    (user: ChatUser, id: string) => product.identity.members.changeRole(user.spaceId, id, 'viewer'),
  ],
] as const)('An automation whose author %s pauses and says why', async (_what, code, change) => {
  const { user } = await withDevice();
  const { editor, own } = await editorOf(user);
  const made = await own.make({ mode: 'work', schedule: { cron: '0 3 1 1 *', timeZone: 'UTC' } });
  await change(user, editor.id);
  const { pool } = product.environment.database;
  // Membership is cached for a second.
  const dueAt = new Date(Date.now() + 2_000);
  await pool.query('UPDATE automations SET next_run_at = ? WHERE id = ?', [dueAt, made.id]);
  const row = await waitFor('the automation to pause itself', async () => {
    const [rows] = await pool.query('SELECT pause_code, enabled, next_run_at FROM automations WHERE id = ?', [made.id]);
    const [found] = rows as { pause_code: string | null; enabled: number; next_run_at: Date | null }[];
    return found?.pause_code && found;
  });
  expect(row).toEqual({ pause_code: code, enabled: 0, next_run_at: null });
  const [turns] = await pool.query('SELECT id FROM turns WHERE thread_id = ?', [made.threadId]);
  expect(turns).toEqual([]);
});

test('An automation whose key is revoked or whose thread is deleted pauses and says why', async () => {
  const { user, own } = await withDevice();
  const made = await user.fetch('/api/keys', { method: 'POST', body: { name: 'bot', scopes: ['chat'] } });
  const { id: keyId, key } = (await made.json()) as { id: string; key: string };
  const byKey = await automationsOf(asUser(product, { ...user, token: key })).make();
  await user.fetch(`/api/keys/${keyId}`, { method: 'DELETE' });
  await own.run(byKey.id);
  expect(await paused(own, byKey.id)).toMatchObject({ pause: { code: 'KEY_REVOKED' } });

  const homeless = await own.make();
  await user.fetch(`/api/threads/${homeless.threadId}`, { method: 'DELETE' });
  await own.run(homeless.id);
  expect(await paused(own, homeless.id)).toMatchObject({ enabled: false, pause: { code: 'THREAD_DELETED' } });
  const moved = await own.change(homeless.id, { threadId: null, enabled: true });
  expect(moved.threadId).not.toBe(homeless.threadId);
  await own.run(moved.id);
  expect((await own.ended(moved.id, 2))[0]).toMatchObject({ status: 'completed' });
});

test('422 for one automation too many in a space, and 429 for one run too many in a day', async () => {
  const { user, own } = await withDevice();
  const [made] = [await own.make({ overlap: 'queue' }), await own.make()];
  const refused = await user.fetch(own.root, { method: 'POST', body: { name: 'Third', prompt: 'x' } });
  expect([refused.status, await refused.json()]).toMatchObject([422, { code: 'TOO_MANY_AUTOMATIONS' }]);

  const secret = await own.secret(made.id);
  for (let count = 1; count <= 8; count++) expect((await deliver(product.url, made.id, secret)).status).toBe(200);
  const late = await deliver(product.url, made.id, secret, { id: 'msg_late' });
  expect([late.status, await late.json()]).toMatchObject([429, { code: 'DAILY_LIMIT' }]);
  expect(late.headers.get('retry-after')).toBe('3600');
  expect((await user.fetch(`${own.root}/${made.id}/run`, { method: 'POST' })).status).toBe(429);
  await own.ended(made.id, 8);
  // The refused delivery was not recorded, so the sender can deliver it again.
  await product.environment.database.pool.query(
    'UPDATE automation_runs SET created_at = created_at - INTERVAL 2 DAY WHERE automation_id = ?',
    [made.id],
  );
  expect((await deliver(product.url, made.id, secret, { id: 'msg_late' })).status).toBe(200);
});
