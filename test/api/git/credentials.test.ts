import { buildApi, type Client, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

async function owner(): Promise<{ as: Client; spaceId: string; path: string; space: string }> {
  const { user, token } = await buildUser(api.identity);
  const { space } = await buildSpace(api.identity, user.id);
  const at = `/api/spaces/${space.id}`;
  return { as: api.as(token), spaceId: space.id, space: at, path: `${at}/git/credentials` };
}

const codeOf = (response: { status: number; body: { code?: string } }) => [response.status, response.body.code];
const fields = {
  name: 'Deploy token',
  host: 'Git.Example.com:443',
  pathPrefix: '/research/',
  secret: 'the token itself',
};

test('A credential is for one server and path, and its secret is never returned', async () => {
  const { as, path, space, spaceId } = await owner();
  const made = await as.post(path, fields);
  expect([made.status, made.body]).toEqual([
    201,
    expect.objectContaining({
      name: 'Deploy token',
      host: 'git.example.com',
      pathPrefix: '/research',
      username: 'git',
      provider: null,
      status: 'active',
    }),
  ]);
  const { id } = made.body as { id: string };
  const list = await as.get(path);
  expect(list.body).toEqual({ data: [made.body], nextCursor: null });
  expect(JSON.stringify([made.body, list.body])).not.toContain('the token itself');
  expect(await api.deps.gitCredentials.secretOf({ id, spaceId })).toBe('the token itself');

  expect((await as.delete(`${path}/${id}`)).status).toBe(204);
  expect(codeOf(await as.delete(`${path}/${id}`))).toEqual([404, 'NOT_FOUND']);
  await expect(api.deps.gitCredentials.secretOf({ id, spaceId })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  const { data: audit } = (await as.get(`${space}/audit`)).body as { data: { action: string; target: string }[] };
  expect(audit.filter(({ target }) => target === id).map(({ action }) => action)).toEqual([
    'git-credential.removed',
    'git-credential.added',
  ]);
});

test('The database has the secret sealed, and bound to its row', async () => {
  const { as, path, spaceId } = await owner();
  const ids = await Promise.all(
    ['first secret', 'second secret'].map(
      async (secret) => ((await as.post(path, { ...fields, secret })).body as { id: string }).id,
    ),
  );
  const { pool } = api.environment.database;
  const read = 'SELECT * FROM git_credentials WHERE space_id = ?';
  const [rows] = await pool.query(read, [spaceId]);
  const text = (rows as { sealed: Buffer }[]).map((row) => `${JSON.stringify(row)} ${row.sealed.toString('latin1')}`);
  expect(text.join()).not.toMatch(/(first|second) secret/);
  // Moved to another row, a secret does not open.
  const [moved, target] = rows as { id: string; sealed: Buffer }[];
  await pool.query('UPDATE git_credentials SET sealed = ? WHERE id = ?', [moved?.sealed, target?.id]);
  await expect(api.deps.gitCredentials.secretOf({ id: target?.id ?? '', spaceId })).rejects.toThrow();
  expect(ids).toHaveLength(2);
});

test('The same idempotency key makes one credential', async () => {
  const { as, path } = await owner();
  const send = () => as.post(path, fields).set('idempotency-key', 'once');
  const first = await send();
  expect((await send()).body).toEqual(first.body);
  expect(((await as.get(path)).body as { data: unknown[] }).data).toHaveLength(1);
  expect(codeOf(await as.post(path, { ...fields, name: 'Other' }).set('idempotency-key', 'once'))).toEqual([
    422,
    'IDEMPOTENCY_KEY_REUSED',
  ]);
});

test.each([
  '*.example.com',
  'https://example.com',
  'a b',
  'user@example.com',
  'example.com/path',
  'example.com:99999',
  'a..b',
])('422 for a credential for the host %s', async (host) => {
  const { as, path } = await owner();
  const refused = await as.post(path, { ...fields, host });
  expect(codeOf(refused)).toEqual([422, 'GIT_HOST_INVALID']);
  expect(refused.body).toMatchObject({ errors: [{ pointer: '/host' }] });
});

test.each([
  ['a secret of two lines', { secret: 'a\nhost=evil.example' }],
  ['a name with a line break', { username: 'a\r\nb' }],
  ['a name that a colon would cut', { username: 'a:b' }],
  ['a path with a query', { pathPrefix: '/a?b' }],
  ['a path that is none', { pathPrefix: 'a' }],
  ['no secret', { secret: '' }],
])('%s is refused', async (_what, change) => {
  const { as, path } = await owner();
  expect(codeOf(await as.post(path, { ...fields, ...change }))).toEqual([400, 'INVALID_REQUEST']);
});

test('Another space can neither see nor remove a credential', async () => {
  const [mine, other] = [await owner(), await owner()];
  const { id } = (await mine.as.post(mine.path, fields)).body as { id: string };
  expect(((await other.as.get(other.path)).body as { data: unknown[] }).data).toEqual([]);
  expect((await other.as.delete(`${other.path}/${id}`)).status).toBe(404);
  expect((await other.as.delete(`${mine.path}/${id}`)).status).toBe(404);
  expect(((await mine.as.get(mine.path)).body as { data: unknown[] }).data).toHaveLength(1);
});
