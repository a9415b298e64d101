import { EgressGuard } from '../../../integrations/egress/guard.ts';
import { createPushFetch } from '../../../integrations/push/pushFetch.ts';
import { asUser, type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { type FakePushService, startFakePushService } from '../../fakes/pushService.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Web push: which devices are told of a turn's end, with what urgency, and which are not. */
let product: TestProduct;
let service: FakePushService;
beforeAll(async () => {
  service = await startFakePushService();
  // The port of this service is the only internal address that can be reached.
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_EGRESS_ALLOW_INTERNAL: new URL(service.url).host,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
});
afterAll(async () => {
  await product.close();
  await service.stop();
});

interface Device {
  id: string;
  service: string;
  deviceName: string | null;
  lastPushedAt: string | null;
}

let devices = 0;
/** A user with a device, which has a name of its own. */
async function withDevice() {
  const user = await product.user();
  const name = `device-${++devices}`;
  const { subscription } = service.device(name);
  const added = await add(user, { ...subscription, deviceName: name });
  expect(added.status).toBe(201);
  return { user, name, subscription, id: ((await added.json()) as Device).id };
}

const add = (user: ChatUser, body: object) => user.fetch('/api/push/subscriptions', { method: 'POST', body });
const list = async (user: ChatUser) => (await user.get<{ data: Device[] }>('/api/push/subscriptions')).data;

/** Sends a message and leaves before the answer. */
async function sendAndLeave(
  user: ChatUser,
  content: string,
  more: object = {},
): Promise<{ turnId: string; threadId: string }> {
  const stream = await user.send({ content, ...more });
  const ids = idsOf(stream);
  stream.abort();
  return ids;
}

const slow = (text: string) => fake({ tokens: [text], firstTokenDelayMs: 300 });

describe('subscriptions', () => {
  test('All users get the key of the installation, which stays the same', async () => {
    const [one, two] = [await product.user(), await product.user()];
    const { publicKey } = await one.get<{ publicKey: string }>('/api/push/key');
    expect(Buffer.from(publicKey, 'base64url')).toHaveLength(65);
    expect(await two.get('/api/push/key')).toEqual({ publicKey });
  });

  test('The same endpoint is the same device, and a list shows no address and no key', async () => {
    const { user, name, subscription, id } = await withDevice();
    const again = (await (await add(user, { ...subscription, deviceName: 'renamed' })).json()) as Device;
    expect(again).toMatchObject({ id, deviceName: 'renamed' });
    const text = JSON.stringify(await list(user));
    expect(JSON.parse(text)).toMatchObject([{ id, service: new URL(service.url).host, lastPushedAt: null }]);
    for (const secret of [`/${name}`, subscription.keys.auth, subscription.keys.p256dh])
      expect(text).not.toContain(secret);
  });

  test('Simultaneous requests with the same endpoint make one device', async () => {
    const user = await product.user();
    const { subscription } = service.device('at once');
    const answers = await Promise.all(Array.from({ length: 8 }, () => add(user, subscription)));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201));
    expect(await list(user)).toHaveLength(1);
  });

  test('A user can remove their own device once, and not another user’s', async () => {
    const { user, id } = await withDevice();
    const other = await product.user();
    const remove = (who: ChatUser) => who.fetch(`/api/push/subscriptions?subscriptionId=${id}`, { method: 'DELETE' });
    expect((await remove(other)).status).toBe(404);
    expect(await list(other)).toEqual([]);
    expect((await remove(user)).status).toBe(204);
    expect((await remove(user)).status).toBe(404);
    expect(await list(user)).toEqual([]);
  });

  test.each([
    ['a key that is not a point', { keys: { p256dh: 'AAAA', auth: 'tBHItJI5svbpez7KI4CCXg' } }, '/keys/p256dh'],
  ])('422 for %s', async (_name, wrong, pointer) => {
    const user = await product.user();
    const { subscription } = service.device('unused');
    const response = await add(user, { ...subscription, ...wrong });
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ code: 'INVALID_SUBSCRIPTION', errors: [{ pointer }] });
  });

  test.each([
    'not a url',
    'file:///etc/passwd',
    'http://push.example.com/send/x',
    'http://93.184.215.14/send/x',
    'https://127.0.0.1/send/x',
    'https://localhost/send/x',
    'https://[::1]:8443/send/x',
    'https://0x7f.1/send/x',
    'https://169.254.169.254/latest',
    'https://10.0.0.1./send/x',
    'https://push..example.com/send/x',
  ])('422 for an endpoint that no push may go to: %s', async (endpoint) => {
    const user = await product.user();
    const { subscription } = service.device('unused');
    const response = await add(user, { ...subscription, endpoint });
    expect([response.status, await response.json()]).toMatchObject([
      422,
      { code: 'PUSH_ENDPOINT_REFUSED', errors: [{ pointer: '/endpoint' }] },
    ]);
    expect(await list(user)).toEqual([]);
  });

  test('An endpoint that was added before it was refused is checked again when it is dialled', async () => {
    const push = createPushFetch(new EgressGuard({ allowInternal: [], resolve: async () => ['93.184.215.14'] }));
    const init = { method: 'POST', headers: {}, body: Buffer.alloc(0), redirect: 'manual' } as const;
    const { signal } = new AbortController();
    for (const endpoint of [`${service.url}/x`, 'http://push.example.com/x', 'https://127.0.0.1/x'])
      await expect(push(endpoint, { ...init, signal })).rejects.toMatchObject({ code: 'PUSH_ENDPOINT_REFUSED' });
  });

  test('The keys and addresses of devices are stored nowhere in clear', async () => {
    const { subscription } = await withDevice();
    const { pool } = product.environment.database;
    const [rows] = await pool.query('SELECT * FROM push_subscriptions');
    expect(JSON.stringify(rows)).not.toContain(subscription.keys.auth);
    for (const { sealed } of rows as { sealed: Buffer }[]) expect(sealed.toString('latin1')).not.toContain('127.0.0.1');
    const [keys] = await pool.query('SELECT id FROM push_keys');
    expect(keys).toHaveLength(1);
  });
});

describe('A turn that ends unseen', () => {
  /** A push comes some seconds after the end of its turn, so these turns run side by side. */
  let pushes: Awaited<ReturnType<typeof pushed>>[];
  beforeAll(async () => {
    pushes = await Promise.all([
      pushed(slow('The answer is 42.')),
      pushed(slow('Said.'), { notification: { priority: 'low' } }),
      pushed(slow('Said.'), { notification: { priority: 'high' } }),
      pushed(fake({ status: 400, headersDelayMs: 300 })),
    ]);
  });

  async function pushed(content: string, more: object = {}) {
    const { user, name } = await withDevice();
    const ids = await sendAndLeave(user, content, more);
    const [push] = await waitFor('the push', () => service.of(name).length > 0 && service.of(name));
    return { user, push, ...ids };
  }

  test('A turn is pushed, encrypted for the device and signed by Atrium', async () => {
    const { user, push, turnId, threadId } = pushes[0] as (typeof pushes)[0];
    expect(push?.payload).toMatchObject({
      type: 'turn.completed',
      turnId,
      threadId,
      priority: 'default',
      options: { body: 'The answer is 42.', tag: turnId, silent: false, requireInteraction: false },
    });
    expect(push?.vapid).toMatchObject({
      aud: service.url,
      publicKey: (await user.get<{ publicKey: string }>('/api/push/key')).publicKey,
    });
    expect(push?.headers).toMatchObject({ urgency: 'normal', ttl: '86400', 'content-encoding': 'aes128gcm' });
    await waitFor('the mark', async () => (await list(user))[0]?.lastPushedAt);
  });

  test.each([
    ['low', 1, { silent: true, requireInteraction: false }],
    ['high', 2, { silent: false, requireInteraction: true, renotify: true }],
  ])('A turn with priority %s is pushed with that urgency', (priority, at, options) => {
    const push = pushes[at]?.push;
    expect(push?.headers.urgency).toBe(priority);
    expect(push?.payload).toMatchObject({ priority, options });
  });

  test('A failed turn is pushed, with the sentence that its stream would have had', () => {
    expect(pushes[3]?.push?.payload).toMatchObject({
      type: 'turn.failed',
      options: { body: 'The model provider refused the request.' },
    });
  });

  test('A push goes only to the user’s own devices, and a device that is gone is removed', async () => {
    const { user, name } = await withDevice();
    const bystander = await withDevice();
    for (const gone of [404, 410]) {
      const { subscription } = service.device(`gone-${gone}`);
      service.answer(`gone-${gone}`, { status: gone });
      await add(user, subscription);
    }
    await sendAndLeave(user, slow('To all.'));
    await waitFor('the push', () => service.of(name).length > 0);
    await waitFor('the gone devices to be forgotten', async () => (await list(user)).length === 1);
    expect(service.of(bystander.name)).toEqual([]);
  });

  test('A busy push service gets the push again after its Retry-After', async () => {
    const { user, name } = await withDevice();
    service.answer(
      name,
      { status: 429, headers: { 'retry-after': '1' } },
      { status: 503, headers: { 'retry-after': '1' } },
    );
    await sendAndLeave(user, slow('At last.'));
    await waitFor('the push', () => service.of(name).length > 0);
    expect(service.requests.filter((asked) => asked === name)).toHaveLength(3);
  });
});

test('No push goes to an internal address', async () => {
  const { user, name } = await withDevice();
  const inside = await startFakePushService();
  await add(user, inside.device('inside').subscription);
  await add(user, { ...inside.device('named').subscription, endpoint: inside.url.replace('127.0.0.1', 'localhost') });
  await sendAndLeave(user, slow('Outside only.'));
  await waitFor('the push', () => service.of(name).length > 0);
  expect(inside.requests).toEqual([]);
  await inside.stop();
});

describe('no push is sent', () => {
  /**
   * Runs a turn that is pushed, after the one that is not: the push of the earlier turn would come first. Returns the
   * number of pushes.
   */
  async function pushedLater(user: ChatUser, name: string): Promise<number> {
    const { turnId } = await sendAndLeave(user, slow('Later.'));
    await waitFor('the later push', () => service.of(name).some(({ payload }) => payload.turnId === turnId));
    return service.of(name).length;
  }

  test('No push for a turn that is read to its end, also after resuming', async () => {
    const { user, name } = await withDevice();
    await user.ask({ content: 'Read as it comes' });
    const { turnId } = await sendAndLeave(user, slow('Resumed elsewhere.'));
    await collect(await user.open(`/chat/turns/${turnId}/stream`));
    expect(await pushedLater(user, name)).toBe(1);
  });

  test('No push for a turn that its owner has stopped', async () => {
    const { user, name } = await withDevice();
    const { turnId } = await sendAndLeave(user, fake({ tokens: 3, fail: { how: 'stall' } }));
    await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
    await user.ended(turnId);
    expect(await pushedLater(user, name)).toBe(1);
  });

  test('No push to a device whose session was revoked', async () => {
    const { user, name } = await withDevice();
    const kept = service.device(`${name}-kept`);
    const [row] = (
      await product.environment.database.pool.query('SELECT session_id FROM push_subscriptions WHERE user_id = ?', [
        user.id,
      ])
    )[0] as { session_id: string }[];
    await product.environment.database.pool.query('UPDATE sessions SET revoked_at = UTC_TIMESTAMP(3) WHERE id = ?', [
      row?.session_id,
    ]);
    const again = await product.identity.sessions.create(user.id);
    const elsewhere = { ...user, token: again };
    const signedIn = asUser(product, elsewhere);
    await add(signedIn, kept.subscription);
    await sendAndLeave(signedIn, slow('Only here.'));
    await waitFor('the push', () => service.of(kept.name).length > 0);
    expect(service.of(name)).toEqual([]);
    await waitFor('the sweep', async () => (await list(signedIn)).length === 1);
  });
});

test('After a kill between the end and the push, the device still gets the push', async () => {
  const { user, name } = await withDevice();
  const { turnId } = await sendAndLeave(user, slow('Through a crash.'));
  await waitFor('the end', async () => (await user.turn(turnId)).endedAt !== null);
  await product.process.kill('SIGKILL');
  await product.restart();
  await waitFor('the push', () => service.of(name).some(({ payload }) => payload.turnId === turnId));
});
