import { openEnvelope } from '../../../models/identity/index.ts';
import { isReservedName } from '../../../models/secrets/names.ts';
import { secretContext } from '../../../models/secrets/secrets.ts';
import { buildApi, type Client, type TestApi } from '../../builders/api.ts';
import { buildSpace, buildUser } from '../../builders/identity.ts';

let api: TestApi;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());

async function team() {
  const [owner, editor, viewer, stranger] = await Promise.all(Array.from({ length: 4 }, () => buildUser(api.identity)));
  if (!owner || !editor || !viewer || !stranger) throw new Error('unreachable');
  const { space } = await buildSpace(api.identity, owner.user.id);
  await api.identity.members.add(space.id, editor.user.email, 'editor');
  await api.identity.members.add(space.id, viewer.user.email, 'viewer');
  const as = (person: { token: string }): Client => api.as(person.token);
  return {
    spaceId: space.id,
    path: `/api/spaces/${space.id}/secrets`,
    people: { owner, editor, viewer, stranger },
    owner: as(owner),
    editor: as(editor),
    viewer: as(viewer),
    stranger: as(stranger),
  };
}

const codeOf = (response: { status: number; body: { code?: string } }) => [response.status, response.body.code];

test('A secret can be set, listed by name, exported, replaced and deleted', async () => {
  const { editor, viewer, path, people } = await team();
  const made = await editor.put(`${path}/API_KEY`, { value: "it's\n$HOME" });
  const times = { createdAt: expect.any(String), updatedAt: expect.any(String) };
  expect([made.status, made.body]).toEqual([
    201,
    { name: 'API_KEY', ...times, updatedBy: people.editor.user.id, leftOutBecause: null },
  ]);
  expect((await editor.put(`${path}/B`, { value: '' })).status).toBe(201);
  const list = await viewer.get(path);
  expect(list.body.data).toEqual([
    {
      name: 'API_KEY',
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      updatedBy: people.editor.user.id,
      leftOutBecause: null,
    },
    expect.objectContaining({ name: 'B' }),
  ]);
  expect(list.text).not.toContain('HOME');
  const env = await editor.get(`${path}/env`);
  expect([env.status, env.body]).toEqual([200, { secrets: ["export API_KEY='it'\\''s\n$HOME'", "export B=''"] }]);
  expect(env.headers['cache-control']).toBe('no-store');
  const replaced = await editor.put(`${path}/API_KEY`, { value: 'new' });
  expect([replaced.status, replaced.body]).toMatchObject([200, { name: 'API_KEY', createdAt: made.body.createdAt }]);
  expect((await editor.get(`${path}/env`)).body.secrets).toEqual(["export API_KEY='new'", "export B=''"]);
  expect((await editor.delete(`${path}/API_KEY`)).status).toBe(204);
  expect(codeOf(await editor.delete(`${path}/API_KEY`))).toEqual([404, 'NOT_FOUND']);
  expect((await editor.get(`${path}/env`)).body.secrets).toEqual(["export B=''"]);
});

test('The list comes in pages', async () => {
  const { editor, path } = await team();
  for (const name of ['C', 'A', 'B']) await editor.put(`${path}/${name}`, { value: 'x' });
  const first = await editor.get(`${path}?limit=2`);
  const rest = await editor.get(`${path}?limit=2&cursor=${first.body.nextCursor}`);
  const names = [...first.body.data, ...rest.body.data].map(({ name }: { name: string }) => name);
  expect([names, rest.body.nextCursor]).toEqual([['A', 'B', 'C'], null]);
});

test.each(['1A', 'A-B', 'A B', 'A=B', "A'", 'Ä', 'a'.repeat(129)])('the name %s is refused', async (name) => {
  const { editor, path } = await team();
  expect((await editor.put(`${path}/${encodeURIComponent(name)}`, { value: 'x' })).status).toBe(400);
});

test.each(['PATH', 'IFS', 'LD_PRELOAD', 'BASH_ENV', 'ENV', 'UID', 'path', 'status', '_', 'BASH_FUNC_x', 'ATRIUM_X'])(
  '422 for the name %s, which means something to a shell',
  async (name) => {
    const { editor, path } = await team();
    expect(codeOf(await editor.put(`${path}/${name}`, { value: 'x' }))).toEqual([422, 'RESERVED_SECRET_NAME']);
  },
);

const reserved =
  `NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PERL5OPT PERL5LIB
  PERL5DB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS CLASSPATH GCONV_PATH LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES GLIBC_TUNABLES
  GIT_SSH_COMMAND GIT_SSH GIT_EDITOR GIT_PAGER GIT_ASKPASS GIT_EXTERNAL_DIFF GIT_CONFIG_KEY_0 GIT_CONFIG_COUNT GIT_EXEC_PATH GIT_PROXY_COMMAND GIT_DIR
  GIT_SSL_NO_VERIFY SSH_ASKPASS EDITOR PAGER LESSOPEN BROWSER MAKEFLAGS CC RUSTC_WRAPPER GOFLAGS LUA_INIT PHPRC npm_config_script_shell
  NPM_CONFIG_REGISTRY PIP_INDEX_URL HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy NO_PROXY no_proxy ftp_proxy SSL_CERT_FILE
  SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE SSLKEYLOGFILE OPENSSL_CONF HOSTALIASES KUBECONFIG XDG_CONFIG_HOME DOTNET_STARTUP_HOOKS`.split(
    /\s+/,
  );
const free =
  `API_KEY STRIPE_KEY GIT_TOKEN GIT_PASSWORD GITHUB_TOKEN GITLAB_PAT NODE_AUTH_TOKEN NPM_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY PGPASSWORD
  DATABASE_URL DOCKER_PASSWORD CARGO_REGISTRY_TOKEN OPENAI_API_KEY PROXY_PASSWORD api_key R00UB0 TF_VAR_password JAVA_KEYSTORE_PASSWORD`.split(
    /\s+/,
  );

test('names that load code or settings into programs, or redirect them, are refused; usual names are accepted', async () => {
  expect(reserved.filter((name) => !isReservedName(name))).toEqual([]);
  expect(free.filter(isReservedName)).toEqual([]);
  const { editor, path } = await team();
  const detailOf = async (name: string) => {
    const response = await editor.put(`${path}/${name}`, { value: 'x' });
    expect(codeOf(response)).toEqual([422, 'RESERVED_SECRET_NAME']);
    return response.body.detail as string;
  };
  expect(await detailOf('NODE_OPTIONS')).toContain('NODE_OPTIONS can make programs run other code');
  expect(await detailOf('https_proxy')).toContain('changes where programs connect to');
  expect(await detailOf('r00ub0')).toContain('use capitals or an underscore');
});

test('a secret whose name was reserved after it was set is no longer exported, and the list says why', async () => {
  const { editor, viewer, path, spaceId, people } = await team();
  await editor.put(`${path}/API_KEY`, { value: 'x' });
  const { database, config } = api.environment;
  const envelope = await openEnvelope(database, config);
  const sealed = await envelope.seal(spaceId, secretContext('NODE_OPTIONS'), Buffer.from('--require ./theirs.js'));
  await database.pool.query(
    `INSERT INTO secrets (space_id, name, sealed, size, revision, created_at, updated_at, updated_by) VALUES (?, 'NODE_OPTIONS', ?, 21, 1, NOW(), NOW(), ?)`,
    [spaceId, sealed, people.editor.user.id],
  );
  expect((await editor.get(`${path}/env`)).body.secrets).toEqual(["export API_KEY='x'"]);
  expect((await viewer.get(path)).body.data).toMatchObject([
    { name: 'API_KEY', leftOutBecause: null },
    { name: 'NODE_OPTIONS', leftOutBecause: expect.stringContaining('run other code') },
  ]);
  expect((await editor.delete(`${path}/NODE_OPTIONS`)).status).toBe(204);
});

test('a value has at most 64 KiB, no NUL, and is Unicode', async () => {
  const { editor, path } = await team();
  expect((await editor.put(`${path}/A`, { value: 'ä'.repeat(32_768) })).status).toBe(201);
  expect(codeOf(await editor.put(`${path}/A`, { value: `${'ä'.repeat(32_768)}.` }))).toEqual([413, 'SECRET_TOO_LARGE']);
  expect(codeOf(await editor.put(`${path}/A`, { value: 'a\0b' }))).toEqual([400, 'INVALID_REQUEST']);
  expect(codeOf(await editor.put(`${path}/A`, { value: '\ud800' }))).toEqual([400, 'INVALID_REQUEST']);
  for (const body of [{}, { value: 5 }, { value: null }, { value: 'x', name: 'B' }]) {
    expect((await editor.put(`${path}/A`, body)).status).toBe(400);
  }
  expect((await editor.get(`${path}/env`)).body.secrets).toEqual([`export A='${'ä'.repeat(32_768)}'`]);
});

test('A space has a limited size for its secrets, and a smaller value makes room again', async () => {
  const { editor, path } = await team();
  const value = 'x'.repeat(65_536);
  for (let i = 0; i < 32; i++) expect((await editor.put(`${path}/S${i}`, { value })).status).toBe(201);
  expect(codeOf(await editor.put(`${path}/MORE`, { value: 'x' }))).toEqual([422, 'TOO_MANY_SECRETS']);
  expect((await editor.put(`${path}/S1`, { value: '' })).status).toBe(200);
  expect((await editor.put(`${path}/MORE`, { value: 'x' })).status).toBe(201);
});

test('403 for a viewer who reads or changes values, 404 for a stranger, and 401 without a token', async () => {
  const { owner, viewer, stranger, path } = await team();
  expect((await owner.put(`${path}/A`, { value: 'x' })).status).toBe(201);
  expect(codeOf(await viewer.put(`${path}/A`, { value: 'x' }))).toEqual([403, 'ROLE_TOO_LOW']);
  expect(codeOf(await viewer.get(`${path}/env`))).toEqual([403, 'ROLE_TOO_LOW']);
  expect(codeOf(await viewer.delete(`${path}/A`))).toEqual([403, 'ROLE_TOO_LOW']);
  for (const answer of [
    await stranger.get(path),
    await stranger.get(`${path}/env`),
    await stranger.put(`${path}/A`, { value: 'x' }),
    await stranger.delete(`${path}/A`),
  ]) {
    expect(codeOf(answer)).toEqual([404, 'NOT_FOUND']);
  }
  expect((await api.as().get(`${path}/env`)).status).toBe(401);
});

test('A key needs the scope secrets:read to read values', async () => {
  const { people, path } = await team();
  const keyWith = async (...scopes: string[]) =>
    api.as((await api.identity.keys.create(people.editor.user.id, { name: 'k', scopes })).key);
  const [manage, read, all] = [
    await keyWith('secrets', 'spaces:write', 'keys'),
    await keyWith('secrets:read'),
    await keyWith('*'),
  ];
  expect((await manage.put(`${path}/A`, { value: 'x' })).status).toBe(201);
  expect(codeOf(await manage.get(`${path}/env`))).toEqual([403, 'INSUFFICIENT_SCOPE']);
  expect((await read.get(`${path}/env`)).body.secrets).toEqual(["export A='x'"]);
  expect((await read.get(path)).status).toBe(403);
  expect((await all.get(`${path}/env`)).status).toBe(200);
});

test('every read and change is in the audit log, with actor and address, and without values', async () => {
  const { owner, editor, viewer, people, path, spaceId } = await team();
  await editor.put(`${path}/A`, { value: 'canary-value' });
  await editor.get(`${path}/env`);
  await viewer.get(`${path}/env`);
  await editor.delete(`${path}/A`);
  const log = await owner.get(`/api/spaces/${spaceId}/audit?limit=3`);
  expect(log.body.data.map(({ action, target }: Record<string, unknown>) => [action, target])).toEqual([
    ['secret.deleted', 'A'],
    ['secrets.read', null],
    ['secret.set', 'A'],
  ]);
  const [session] = (await api.identity.sessions.list(people.editor.user.id, { limit: 1 })).data;
  expect(log.body.data[1]).toMatchObject({
    userId: people.editor.user.id,
    credentialId: session?.id,
    address: expect.stringContaining('127.0.0.1'),
  });
  expect(log.text).not.toContain('canary-value');
  expect(codeOf(await editor.get(`/api/spaces/${spaceId}/audit`))).toEqual([403, 'ROLE_TOO_LOW']);
  const older = await owner.get(`/api/spaces/${spaceId}/audit?limit=3&cursor=${log.body.nextCursor}`);
  expect(older.body.data.map(({ action }: { action: string }) => action)).toEqual([
    'member.added',
    'member.added',
    'space.made',
  ]);
});

test('A row that was moved to another space, or given another name, does not open', async () => {
  const [mine, theirs] = [await team(), await team()];
  await mine.editor.put(`${mine.path}/A`, { value: 'x' });
  const { pool } = api.environment.database;
  await pool.query('UPDATE secrets SET name = ? WHERE space_id = ?', ['B', mine.spaceId]);
  expect((await mine.editor.get(`${mine.path}/env`)).status).toBe(500);
  await pool.query('UPDATE secrets SET name = ?, space_id = ? WHERE space_id = ?', ['A', theirs.spaceId, mine.spaceId]);
  const moved = await theirs.editor.get(`${theirs.path}/env`);
  expect([moved.status, moved.text.includes('export')]).toEqual([500, false]);
  await pool.query('UPDATE secrets SET space_id = ? WHERE space_id = ?', [mine.spaceId, theirs.spaceId]);
  expect((await mine.editor.get(`${mine.path}/env`)).body.secrets).toEqual(["export A='x'"]);
});

test('After simultaneous writes, the value of one of them is stored whole', async () => {
  const { editor, path } = await team();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => editor.put(`${path}/A`, { value: String(index).repeat(1_000) })),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 19 }, () => 200), 201]);
  const [statement] = (await editor.get(`${path}/env`)).body.secrets;
  expect(statement).toMatch(/^export A='(\d{1,2})\1{999}'$/);
});
