import type { operations } from '../../../api/generated/types.gen.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { type FakeHost, startFakeHost } from '../../fakes/computerHost.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('computers');

type Computer = operations['getComputer']['responses'][200]['content']['application/json'];

let product: TestProduct;
let host: FakeHost;

beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '1',
    ATRIUM_COMPUTER_TRANSITION_SECONDS: '5',
    ATRIUM_COMPUTERS_RUNNING_PER_SPACE: '2',
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
  host = await startFakeHost(product.environment);
});
afterEach(() => host.behave({}));
afterAll(async () => {
  await host.stop();
  await product.close();
});

async function computerOf(user: ChatUser) {
  const computers = `/api/spaces/${user.spaceId}/computers`;
  const { computerId } = await user.get<{ computerId: string }>(`${computers}/status`);
  return handle(user, computerId);
}

function handle(user: ChatUser, id: string) {
  const path = `/api/spaces/${user.spaceId}/computers/${id}`;
  const post = async (verb: string, body?: unknown) => {
    const response = await user.fetch(`${path}/${verb}`, { method: 'POST', body });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const get = () => user.get<Computer>(path);
  return {
    id,
    path,
    post,
    get,
    becomes: (status: string) => waitFor(status, async () => ((await get()).status === status ? get() : undefined)),
    delete: () => user.fetch(path, { method: 'DELETE' }),
  };
}

test('A hundred concurrent wakes start a computer once, and all answer that it runs', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  const answers = await Promise.all(Array.from({ length: 100 }, () => computer.post('wake')));
  expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
    new Set([JSON.stringify({ status: 200, body: { ok: true, id: computer.id } })]),
  );
  expect(host.calls(computer.id)).toEqual(['start']);
  expect(await computer.get()).toMatchObject({ status: 'running', generation: 1, error: null });
  expect(await computer.post('wake')).toMatchObject({ status: 200 });
  expect(host.calls(computer.id)).toEqual(['start']);
});

test('A computer stops, starts, pauses, resumes and recovers', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  expect(await computer.post('pause')).toMatchObject({ status: 409, body: { code: 'COMPUTER_NOT_RUNNING' } });
  expect(await computer.post('stop')).toMatchObject({ status: 200, body: { status: 'created' } });
  await computer.post('wake');
  expect(await computer.post('stop')).toMatchObject({ status: 200, body: { status: 'stopped', generation: 1 } });
  await computer.post('wake');
  expect(await computer.post('pause')).toMatchObject({ status: 200, body: { status: 'paused', generation: 2 } });
  expect(await computer.post('pause')).toMatchObject({ status: 200, body: { status: 'paused' } });
  expect(await computer.post('wake')).toMatchObject({ status: 200, body: { ok: true } });
  expect(await computer.get()).toMatchObject({ status: 'running', generation: 2 });
  expect(await computer.post('recover')).toMatchObject({ status: 200, body: { status: 'running', generation: 3 } });
  expect(host.calls(computer.id)).toEqual(['start', 'stop', 'start', 'pause', 'resume', 'stop', 'start']);
});

test('A start that the host refuses reports why, takes no slot, and can be tried again', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  host.behave({ start: 'START_FAILED' });
  expect(await computer.post('wake')).toMatchObject({ status: 502, body: { code: 'START_FAILED' } });
  expect(await computer.get()).toMatchObject({ status: 'error', error: { code: 'START_FAILED' } });
  host.behave({});
  // The space may run two computers at once.
  const others = await Promise.all([1, 2].map(() => made(user)));
  for (const other of others) expect(await other.post('wake')).toMatchObject({ status: 200 });
  expect(await computer.post('wake')).toMatchObject({ status: 409, body: { code: 'TOO_MANY_RUNNING' } });
  await others[0]?.post('stop');
  expect(await computer.post('wake')).toMatchObject({ status: 200 });
  expect(await computer.get()).toMatchObject({ status: 'running', error: null });
});

test('A wake times out on a host that never answers, and a stop does not wait for a hanging start', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  host.behave({ start: 'hang' });
  expect(await computer.post('wake')).toMatchObject({ status: 503, body: { code: 'TIMED_OUT' } });
  expect(await computer.get()).toMatchObject({ status: 'error', error: { code: 'TIMED_OUT' } });
  const [woken] = await Promise.all([
    computer.post('wake'),
    computer.becomes('starting').then(() => computer.post('stop')),
  ]);
  expect(woken).toMatchObject({ status: 409, body: { code: 'COMPUTER_STOPPED' } });
  expect(await computer.get()).toMatchObject({ status: 'stopped' });
  host.behave({});
  expect(await computer.post('recover')).toMatchObject({ status: 200, body: { status: 'running' } });
});

test('A computer can be deleted in every state without being started, and its space gets a new default', async () => {
  /** The calls up to `destroy`. A heartbeat that began earlier may destroy the computer again. */
  const callsOf = (id: string) => host.calls(id).slice(0, host.calls(id).indexOf('destroy') + 1);
  const user = await product.user();
  const first = await computerOf(user);
  expect((await first.delete()).status).toBe(204);
  expect(host.calls(first.id)).toEqual([]);
  const running = await computerOf(user);
  expect(running.id).not.toBe(first.id);
  await running.post('wake');
  expect((await running.delete()).status).toBe(204);
  expect(callsOf(running.id)).toEqual(['start', 'destroy']);
  const paused = await computerOf(user);
  await paused.post('wake');
  await paused.post('pause');
  expect((await paused.delete()).status).toBe(204);
  expect(callsOf(paused.id)).toEqual(['start', 'pause', 'destroy']);
  const starting = await computerOf(user);
  host.behave({ start: 'hang' });
  const [woken, deleted] = await Promise.all([
    starting.post('wake'),
    starting.becomes('starting').then(() => starting.delete()),
  ]);
  expect([woken.status, deleted.status]).toEqual([409, 204]);
  host.behave({});
  const broken = await computerOf(user);
  host.behave({ start: 'DISK_FULL' });
  await broken.post('wake');
  expect((await broken.delete()).status).toBe(204);
  expect((await broken.delete()).status).toBe(404);
  // If the home cannot be removed now, the computer is deleted anyway, and the home is removed later.
  host.behave({ destroy: 'START_FAILED' });
  const stuck = await computerOf(user);
  await stuck.post('wake');
  expect((await stuck.delete()).status).toBe(204);
  expect(host.state(stuck.id)).toBeDefined(); // perhaps stopped already, because it is deleted
  host.behave({});
  await waitFor('the home to be removed', () => host.state(stuck.id) === undefined);
});

test('A copy gets its own home and settings, and a failed copy leaves nothing behind', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  const unused = await computer.post('fork', { name: 'Before' });
  expect(unused).toMatchObject({ status: 201, body: { name: 'Before', status: 'created', forkedFrom: computer.id } });
  await computer.post('wake');
  const copy = await computer.post('fork');
  expect(copy).toMatchObject({ status: 201, body: { status: 'stopped', isDefault: false, name: 'Computer' } });
  expect(host.calls(String(copy.body.id))).toEqual(['fork']);
  expect(await handle(user, String(copy.body.id)).post('wake')).toMatchObject({ status: 200 });
  host.behave({ fork: 'DISK_FULL' });
  expect(await computer.post('fork')).toMatchObject({ status: 503, body: { code: 'DISK_FULL' } });
  const { data } = await user.get<{ data: Computer[] }>(`/api/spaces/${user.spaceId}/computers`);
  expect(data.map(({ name, status }) => [name, status])).toEqual([
    ['Computer', 'running'],
    ['Before', 'created'],
    ['Computer', 'running'],
  ]);
});

test('A computer that ends by itself reports COMPUTER_ENDED, and unwanted computers are stopped', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  await computer.post('wake');
  host.put(computer.id, { state: 'gone' });
  expect(await computer.becomes('error')).toMatchObject({ error: { code: 'COMPUTER_ENDED' } });
  const now = new Date().toISOString();
  const stray = { state: 'running', generation: 1, startedAt: now, lastActiveAt: now, runningProcesses: 1 } as const;
  host.put(computer.id, stray);
  host.put('cmp_unknown', stray);
  await waitFor('both to be stopped', () =>
    [computer.id, 'cmp_unknown'].every((id) => host.state(id)?.state === 'gone'),
  );
});

test('A computer reports HOST_LOST while its host is gone, and goes on when the host is back', async () => {
  const user = await product.user();
  const [computer, other] = [await computerOf(user), await made(user)];
  await computer.post('wake');
  await other.post('wake');
  await host.kill();
  expect(await computer.becomes('error')).toMatchObject({ error: { code: 'HOST_LOST' } });
  await other.becomes('error');
  expect(await computer.post('wake')).toMatchObject({ status: 503, body: { code: 'HOST_LOST' } });
  expect(await computer.post('recover')).toMatchObject({ status: 503, body: { code: 'HOST_LOST' } });
  // A deletion does not wait for the host.
  expect((await other.delete()).status).toBe(204);
  await host.restart();
  expect(await computer.becomes('running')).toMatchObject({ generation: 1, error: null });
  await waitFor('the deleted computer to be removed', () => host.state(other.id) === undefined);
  expect(host.calls(computer.id)).toEqual(['start']);
});

full.test('A computer whose host is lost can recover on another host with a new home', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  await computer.post('wake');
  expect(await computer.post('recover', { discardHome: true })).toMatchObject({
    status: 409,
    body: { code: 'HOME_IS_THERE' },
  });
  await host.kill();
  await computer.becomes('error');
  const second = await startFakeHost(product.environment);
  try {
    const recovered = await computer.post('recover', { discardHome: true });
    expect(recovered).toMatchObject({ status: 200, body: { status: 'running', generation: 2 } });
    expect(second.calls(computer.id)).toEqual(['start']);
    await host.restart();
    await waitFor('the first home to be removed', () => host.state(computer.id) === undefined);
    expect(await computer.get()).toMatchObject({ status: 'running', generation: 2 });
    await computer.delete();
  } finally {
    await second.stop();
  }
});

full.test('Deleting a space removes its computers', async () => {
  const user = await product.user();
  const computer = await computerOf(user);
  await computer.post('wake');
  await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' });
  await waitFor('the home to be removed', () => host.state(computer.id) === undefined);
  await waitFor('the rows to be removed', async () => {
    const [rows] = await product.environment.database.pool.query('SELECT id FROM computers WHERE space_id = ?', [
      user.spaceId,
    ]);
    return (rows as unknown[]).length === 0;
  });
});

async function made(user: ChatUser) {
  const response = await user.fetch(`/api/spaces/${user.spaceId}/computers`, { method: 'POST', body: {} });
  return handle(user, ((await response.json()) as Computer).id);
}
