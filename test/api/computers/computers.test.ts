import { getComputer } from '../../../models/computers/computer.ts';
import { addDefaultComputer } from '../../../models/computers/defaultComputer.ts';
import { reportHost } from '../../../models/computers/hosts.ts';
import { transaction } from '../../../models/database/database.ts';
import { buildApi, type Client, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi({ ATRIUM_COMPUTERS_PER_SPACE: '3', ATRIUM_COMPUTER_MEMORY_MIB_MAX: '4096' });
});
afterAll(() => api.close());

async function owner(): Promise<{ as: Client; spaceId: string; path: string; userId: string }> {
  const { user, token } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  return { as: api.as(token), spaceId: space.id, path: `/api/spaces/${space.id}/computers`, userId: user.id };
}

const codeOf = (response: { status: number; body: { code?: string } }) => [response.status, response.body.code];

async function rowsOf(spaceId: string): Promise<Record<string, unknown>[]> {
  const [rows] = await api.environment.database.pool.query('SELECT * FROM computers WHERE space_id = ?', [spaceId]);
  return rows as Record<string, unknown>[];
}

test('a new space has one computer, which is its default and not used yet', async () => {
  const { as, path, userId } = await owner();
  const status = await as.get(`${path}/status`);
  expect([status.status, status.body]).toEqual([
    200,
    { status: 'created', computerId: expect.stringMatching(/^cmp_/) },
  ]);
  const list = await as.get(path);
  expect(list.body).toEqual({
    data: [
      expect.objectContaining({
        id: status.body.computerId,
        isDefault: true,
        status: 'created',
        error: null,
        generation: 0,
        createdBy: userId,
        cpu: 1,
        memoryMiB: 2_048,
      }),
    ],
    nextCursor: null,
  });
  // `status` is a word of the path. `Status` is read as the id of a computer.
  expect(codeOf(await as.get(`${path}/Status`))).toEqual([404, 'NOT_FOUND']);
});

test('A space without a default computer gets one, also when 20 requests ask for it at once', async () => {
  const { database } = api.environment;
  const { as, path, spaceId } = await owner();
  await database.pool.query('DELETE FROM computers WHERE space_id = ?', [spaceId]);
  const answers = await Promise.all(Array.from({ length: 20 }, () => as.get(`${path}/status`)));
  const ids = new Set(answers.map(({ body }) => body.computerId as string));
  expect(ids.size).toBe(1);
  expect(await rowsOf(spaceId)).toHaveLength(1);
  await transaction(database, (tx) => addDefaultComputer(tx, spaceId, null));
  expect(await rowsOf(spaceId)).toHaveLength(1);
});

test('A computer is made with limits and variables, once for each idempotency key, and changed', async () => {
  const { as, path, spaceId } = await owner();
  const body = {
    name: 'Build',
    cpu: 2.5,
    memoryMiB: 4_096,
    diskMiB: 128,
    idleMinutes: 5,
    env: { TOKEN: 'a-very-secret-value' },
  };
  const send = () => as.post(path, body).set('idempotency-key', 'once');
  const [first, second] = [await send(), await send()];
  expect(first.status).toBe(201);
  expect(second.body).toEqual(first.body);
  expect(first.body).toMatchObject({
    name: 'Build',
    isDefault: false,
    cpu: 2.5,
    memoryMiB: 4_096,
    diskMiB: 128,
    idleMinutes: 5,
    envNames: ['TOKEN'],
    driver: 'bubblewrap',
  });
  expect(first.text).not.toContain('secret-value');
  const one = `${path}/${first.body.id as string}`;
  const changed = await as.patch(one, { name: 'Other', cpu: 0.5, env: { A: '1', B: '2' } });
  expect([changed.status, changed.body]).toMatchObject([
    200,
    { name: 'Other', cpu: 0.5, memoryMiB: 4_096, envNames: ['A', 'B'] },
  ]);
  expect((await as.get(one)).body).toEqual(changed.body);
  expect(JSON.stringify(await rowsOf(spaceId))).not.toContain('secret-value');
  const { data } = (await as.get(`/api/spaces/${spaceId}/audit`)).body as {
    data: { action: string; target: string }[];
  };
  expect(data.filter(({ target }) => target === first.body.id).map(({ action }) => action)).toEqual([
    'computer.changed',
    'computer.made',
  ]);
});

test('Variables that are sealed for one computer cannot be opened for another', async () => {
  const { as, path, spaceId } = await owner();
  const { body } = await as.post(path, { env: { A: 'for this one' } });
  const other = await as.post(path, { env: { A: 'for the other' } });
  const [row] = await rowsOf(spaceId).then((rows) => rows.filter(({ id }) => id === body.id));
  await api.environment.database.pool.query('UPDATE computers SET sealed_env = ? WHERE id = ?', [
    row?.sealed_env,
    other.body.id,
  ]);
  const { computers } = api.deps;
  const order = await computers.orderOf(await getComputer(api.environment.database, spaceId, body.id as string));
  expect(order).toMatchObject({ env: { A: 'for this one' }, driver: 'bubblewrap', limits: { memoryMiB: 2_048 } });
  const moved = await getComputer(api.environment.database, spaceId, other.body.id as string);
  await expect(computers.orderOf(moved)).rejects.toThrow();
});

test('Wrong input is refused', async () => {
  const { as, path } = await owner();
  const refused = async (body: object) => codeOf(await as.post(path, body));
  expect(await refused({ cpu: 0 })).toEqual([400, 'INVALID_REQUEST']);
  expect(await refused({ memoryMiB: 1.5 })).toEqual([400, 'INVALID_REQUEST']);
  expect(await refused({ driver: 'chroot' })).toEqual([400, 'INVALID_REQUEST']);
  expect(await refused({ env: { 'NOT A NAME': '' } })).toEqual([400, 'INVALID_REQUEST']);
  expect(await refused({ other: 1 })).toEqual([400, 'INVALID_REQUEST']);
  expect(await refused({ env: Object.fromEntries(['A', 'B'].map((name) => [name, 'x'.repeat(20_000)])) })).toEqual([
    422,
    'BAD_ENV',
  ]);
  const loading = await as.post(path, {
    env: { LANG: 'C', LD_PRELOAD: '/x.so', BASH_ENV: '/x', GIT_SSH_COMMAND: 'x' },
  });
  expect([codeOf(loading), loading.body.detail]).toEqual([
    [422, 'VARIABLE_REFUSED'],
    'These variables are not allowed: LD_PRELOAD, BASH_ENV, GIT_SSH_COMMAND.',
  ]);
  const usual = ['GIT_AUTHOR_NAME', 'GIT_COMMITTER_EMAIL', 'GIT_TOKEN', 'PYTHONUNBUFFERED', 'NODE_ENV', 'JAVA_HOME'];
  expect((await as.post(path, { env: Object.fromEntries(usual.map((name) => [name, 'x'])) })).status).toBe(201);
  const tooMuch = await as.post(path, { memoryMiB: 5_000, cpu: 60 });
  expect([tooMuch.status, tooMuch.body]).toMatchObject([
    422,
    {
      code: 'LIMIT_TOO_HIGH',
      detail:
        'The computer would be larger than the operator allows: cpu must be at most 4, memoryMiB must be at most 4096.',
      errors: [
        { pointer: '/cpu', detail: 'must be at most 4' },
        { pointer: '/memoryMiB', detail: 'must be at most 4096' },
      ],
    },
  ]);
});

test('A computer can have the configured driver, or one that a living host has', async () => {
  const { as, path } = await owner();
  const { database, config } = api.environment;
  expect((await as.post(path, { driver: config.computers.driver })).status).toBe(201);
  const refused = await as.post(path, { driver: 'gvisor' });
  expect([refused.status, refused.body]).toMatchObject([
    422,
    {
      code: 'DRIVER_NOT_OFFERED',
      detail: 'The computer cannot run with this driver: no host here has gvisor; there is bubblewrap.',
      errors: [{ pointer: '/driver', detail: 'no host here has gvisor; there is bubblewrap' }],
    },
  ]);
  const host = { id: 'hst_drivers', address: null, cpuMilli: 1_000, memoryMiB: 1_000, maxRunning: 1 };
  await reportHost(database, { ...host, drivers: ['bubblewrap', 'gvisor'] });
  const made = await as.post(path, { driver: 'gvisor' });
  expect([made.status, made.body.driver]).toEqual([201, 'gvisor']);
  const other = await as.post(path, { driver: 'docker' });
  expect(other.body.errors).toEqual([
    { pointer: '/driver', detail: 'no host here has docker; there are bubblewrap, gvisor' },
  ]);
  await database.pool.query('UPDATE computer_hosts SET seen_at = seen_at - INTERVAL 1 HOUR WHERE id = ?', [host.id]);
  expect(codeOf(await as.post(path, { driver: 'gvisor' }))).toEqual([422, 'DRIVER_NOT_OFFERED']);
});

test('A computer can have labels that a living host has, and its copies have them too', async () => {
  const { as, path } = await owner();
  const { database } = api.environment;
  const labels = ['gpu', 'eu'];
  const refused = await as.post(path, { labels });
  expect([refused.status, refused.body]).toMatchObject([
    422,
    {
      code: 'LABELS_NOT_OFFERED',
      detail: 'The computer cannot run with these labels: no host here has gpu and eu.',
      errors: [{ pointer: '/labels', detail: 'no host here has gpu and eu' }],
    },
  ]);
  const host = { id: 'hst_labels', address: null, drivers: [], cpuMilli: 1_000, memoryMiB: 1_000, maxRunning: 1 };
  await reportHost(database, { ...host, labels: ['eu', 'fast', 'gpu'] });
  await reportHost(database, { ...host, id: 'hst_fast', labels: ['fast'] });
  const { body } = await as.post(path, { labels });
  const made = `${path}/${body.id}`;
  expect((await as.get(made)).body.labels).toEqual(labels);
  expect((await as.post(`${made}/fork`)).body.labels).toEqual(labels);
  expect(codeOf(await as.patch(made, { labels: ['gpu', 'slow'] }))).toEqual([422, 'LABELS_NOT_OFFERED']);
  expect((await as.patch(made, { name: 'Fast' })).body.labels).toEqual(labels);
  expect((await as.patch(made, { labels: [] })).body.labels).toEqual([]);
  for (const wrong of [['a,b'], [''], ['gpu', 'gpu']])
    expect((await as.patch(made, { labels: wrong })).status).toBe(400);
  await database.pool.query('UPDATE computer_hosts SET seen_at = seen_at - INTERVAL 1 HOUR WHERE id = ?', [host.id]);
  expect(codeOf(await as.patch(made, { labels }))).toEqual([422, 'LABELS_NOT_OFFERED']);
});

test('The limit on the computers of a space holds for simultaneous requests', async () => {
  const { as, path } = await owner();
  const answers = await Promise.all(Array.from({ length: 6 }, () => as.post(path, {})));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409]);
  expect(answers.find(({ status }) => status === 409)?.body.code).toBe('TOO_MANY_COMPUTERS');
});

test('404 for another tenant’s computer', async () => {
  const [mine, theirs] = [await owner(), await owner()];
  const { body } = await theirs.as.get(`${theirs.path}/status`);
  const id = body.computerId as string;
  expect(codeOf(await mine.as.get(`${mine.path}/${id}`))).toEqual([404, 'NOT_FOUND']);
  expect(codeOf(await mine.as.patch(`${mine.path}/${id}`, { name: 'Mine' }))).toEqual([404, 'NOT_FOUND']);
  expect(codeOf(await mine.as.get(`${theirs.path}/${id}`))).toEqual([404, 'NOT_FOUND']);
});
