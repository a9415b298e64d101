import { buildChatUser } from '../../builders/chat.ts';
import { driveOf } from '../../builders/drive.ts';
import { buildGit, gitOf, remoteRepository, type TestGit } from '../../builders/repository.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestGit;

beforeAll(async () => {
  product = await buildGit(hurriedSweeper);
});
afterAll(() => product.close());
beforeEach(() => product.server.reset());

async function newUser() {
  const user = await buildChatUser(product);
  return { user, git: gitOf(user), drive: driveOf(product, user) };
}

/** The server takes requests for a pack and does not answer. Returns how many requests have come. */
function holdPacks(): () => number {
  let held = 0;
  product.server.interfere = (req) => {
    if (!req.url?.endsWith('/git-upload-pack')) return false;
    held += 1;
    return true;
  };
  return () => held;
}

test('a repository is an item at once, and ready when its clone has ended', async () => {
  const { user, git, drive } = await newUser();
  const { url, name } = remoteRepository(product.server, { 'a.txt': 'words', 'folder/b.txt': 'more' });
  const made = await git.clone({ url });
  expect([made.status, made.body]).toEqual([
    201,
    expect.objectContaining({ status: 'cloning', url, name, path: `/${name}` }),
  ]);
  const repository = await git.cloned(made.body.id);
  expect(repository).toMatchObject({
    status: 'ready',
    error: null,
    progress: null,
    defaultBranch: 'main',
    contents: { files: 2, bytes: 9, lfsPointers: 0, submodules: [] },
    treePath: `repositories/${name}`,
    operationId: null,
  });
  expect(await git.operation(made.body.operationId ?? '')).toMatchObject({
    kind: 'cloneRepository',
    status: 'succeeded',
    result: { id: made.body.id },
  });
  const item = await (await drive.send('GET', `/items/${made.body.id}`)).json();
  expect(item).toMatchObject({ kind: 'repository', name, size: null });
  const audit = await user.get<{ data: { action: string; target: string }[] }>(`${git.space}/audit`);
  expect(audit.data).toContainEqual(expect.objectContaining({ action: 'repository.cloned', target: made.body.id }));
});

test('A clone counts against the quota of its space', async () => {
  const { user, git } = await newUser();
  const used = async () => (await user.get<{ usedBytes: number }>(`${git.space}/drive`)).usedBytes;
  expect(await used()).toBe(0);
  await git.cloned((await git.clone({ url: remoteRepository(product.server).url })).body.id);
  expect(await used()).toBeGreaterThan(0);
});

test.each([
  ['http://git.example.com/a.git', 'GIT_URL_REFUSED'],
  ['ext::sh -c touch% /tmp/x', 'GIT_URL_REFUSED'],
  ['file:///etc', 'GIT_URL_REFUSED'],
  ['--upload-pack=touch /tmp/x', 'GIT_URL_REFUSED'],
  ['https://git.example.com/team/..%2fother/a.git', 'GIT_URL_REFUSED'],
  ['https://git.example.com/team/%2e%2e/other/a.git', 'GIT_URL_REFUSED'],
  ['https://ghp_sooPersonal@git.example.com/a.git', 'GIT_URL_REFUSED'],
])('The URL %s is refused, and the error does not repeat it', async (url, code) => {
  const { git } = await newUser();
  const refused = await git.clone({ url });
  expect([refused.status, refused.code]).toEqual([422, code]);
  expect(refused.text).not.toMatch(/sooPersonal|\/tmp\/x/);
});

test.each([
  ['https://10.0.0.7/a.git', 'its address is internal'],
  ['https://127.1/a.git', 'its address is internal'],
  ['https://[::1]/a.git', 'its address is internal'],
  ['https://169.254.169.254/a.git', 'its address is internal'],
  ['https://localhost/a.git', 'its address is internal'],
  ['https://git.localhost/a.git', 'its address is internal'],
  ['https://git.example.com:25/a.git', 'this port is not allowed'],
])('%s is refused at once: %s', async (url, reason) => {
  const { git } = await newUser();
  const refused = await git.clone({ url });
  expect([refused.status, refused.code]).toEqual([422, 'GIT_REMOTE_FORBIDDEN']);
  expect(JSON.parse(refused.text)).toMatchObject({ errors: [{ pointer: '/url', detail: reason }] });
  expect(refused.text.includes('ATRIUM_EGRESS_ALLOW_INTERNAL')).toBe(reason === 'its address is internal');
});

test.each([['-u'], ['a..b'], ['a b'], ['refs/heads/a'], ['a'.repeat(250)]])(
  '422 for the branch name %s',
  async (branch) => {
    const { git } = await newUser();
    const refused = await git.clone({ url: 'https://git.example.com/a.git', branch });
    expect([refused.status, refused.code]).toEqual([422, 'GIT_BRANCH_NAME_REFUSED']);
  },
);

test('A clone gets a free name after its URL, and a taken name is refused if it was asked for', async () => {
  const { git, drive } = await newUser();
  const { url, name } = remoteRepository(product.server);
  const first = await git.clone({ url });
  const second = await git.clone({ url });
  expect([first.body.name, second.body.name]).toEqual([name, `${name} (2)`]);
  expect(second.body.treePath).toBe(`repositories/${name} (2)`);
  const taken = await git.clone({ url, name });
  expect([taken.status, taken.code]).toEqual([409, 'NAME_TAKEN']);
  const folder = (await (await drive.send('POST', '/folders', { path: '/work' })).json()) as { id: string };
  expect((await git.clone({ url, name, parentId: folder.id })).body.path).toBe(`/work/${name}`);
  expect((await git.clone({ url, name: 'a/b' })).code).toBe('INVALID_NAME');
});

test('A private repository is cloned with a credential for its server and path', async () => {
  const { git } = await newUser();
  const { url } = remoteRepository(product.server);
  const host = `localhost:${product.server.port}`;
  product.server.requires = 'robot:the very secret';
  const without = await git.cloned((await git.clone({ url })).body.id);
  expect(without).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringContaining('the repository has none') },
  });

  const add = async (more: object) =>
    (
      await git.send<{ id: string }>('POST', '/git/credentials', {
        name: 'x',
        host,
        secret: 'the very secret',
        ...more,
      })
    ).body.id;
  const elsewhere = await add({ host: 'git.example.com' });
  expect((await git.clone({ url, credentialId: elsewhere })).code).toBe('GIT_CREDENTIAL_ELSEWHERE');
  const below = await add({ pathPrefix: '/other' });
  expect((await git.clone({ url, credentialId: below })).code).toBe('GIT_CREDENTIAL_ELSEWHERE');

  const credentialId = await add({ username: 'robot' });
  const repository = await git.cloned((await git.clone({ url, credentialId })).body.id);
  expect(repository).toMatchObject({ status: 'ready', credentialId });
  expect(product.process.log()).not.toContain('the very secret');
});

test('The credential of a repository is changed by retry-clone, and also when the repository is ready', async () => {
  const { user, git } = await newUser();
  const { url } = remoteRepository(product.server);
  const host = `localhost:${product.server.port}`;
  product.server.requires = 'robot:the very secret';
  const add = async (more: object) => {
    const fields = { name: 'x', host, username: 'robot', secret: 'the very secret', ...more };
    return (await git.send<{ id: string }>('POST', '/git/credentials', fields)).body.id;
  };
  const [good, wrong, elsewhere] = [
    await add({}),
    await add({ secret: 'another one' }),
    await add({ host: 'git.example.com' }),
  ];
  const { id } = (await git.clone({ url, credentialId: wrong })).body;
  expect(await git.cloned(id)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringMatching(/^The remote refuses the repository/) },
  });
  const codeOf = async (asked: Promise<{ status: number; code: string | undefined }>) => {
    const { status, code } = await asked;
    return [status, code];
  };
  const give = (body: unknown) => git.send('PATCH', `/git/${id}`, body);
  for (const ask of [(body: unknown) => git.retry(id, body), give]) {
    expect(await codeOf(ask({ credentialId: elsewhere }))).toEqual([422, 'GIT_CREDENTIAL_ELSEWHERE']);
    expect(await codeOf(ask({ credentialId: 'gcr_1' }))).toEqual([404, 'NOT_FOUND']);
    expect(await codeOf(ask({ credentialId: good, secret: 'x' }))).toEqual([400, 'INVALID_REQUEST']);
  }
  expect(await git.get(id)).toMatchObject({ status: 'failed', credentialId: wrong });
  expect((await git.retry(id, { credentialId: good })).status).toBe(200);
  expect(await git.cloned(id)).toMatchObject({ status: 'ready', credentialId: good });

  expect(await give({ credentialId: null })).toMatchObject({ status: 200, body: { credentialId: null } });
  expect(await codeOf(give({}))).toEqual([400, 'INVALID_REQUEST']);
  expect(await give({ credentialId: good })).toMatchObject({ status: 200, body: { credentialId: good } });
  // Giving the same credential again is no entry.
  expect((await give({ credentialId: good })).status).toBe(200);
  const { data } = await user.get<{ data: { action: string }[] }>(`${git.space}/audit`);
  expect(data.filter(({ action }) => action === 'repository.credential-changed')).toHaveLength(3);
});

test('A clone that was cut off goes on by retry-clone, which returns the item', async () => {
  const { git } = await newUser();
  const { url } = remoteRepository(product.server, { 'large.txt': 'x'.repeat(200_000) });
  product.server.cutAfter = 100;
  const { id } = (await git.clone({ url })).body;
  const failed = await git.cloned(id);
  expect(failed).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_REMOTE_FAILED', detail: expect.stringMatching(/\. Git says: .+\.$/) },
  });
  expect(failed.error?.detail).not.toContain('//');
  expect(await git.operation(failed.operationId ?? '')).toMatchObject({ error: { code: 'GIT_REMOTE_FAILED' } });

  product.server.reset();
  const retried = await git.retry(id);
  expect([retried.status, retried.body]).toEqual([200, { id }]);
  expect(await git.cloned(id)).toMatchObject({ status: 'ready', error: null });
  const again = await git.retry(id);
  expect([again.status, again.code]).toEqual([409, 'GIT_CLONE_SUCCEEDED']);
});

test('409 for retrying a clone that is under way', async () => {
  const { git } = await newUser();
  const { url } = remoteRepository(product.server);
  const held = holdPacks();
  const { id, operationId } = (await git.clone({ url })).body;
  await waitFor('the clone to ask for a pack', () => held() > 0);
  const retried = await git.retry(id);
  expect([retried.status, retried.code]).toEqual([409, 'GIT_CLONE_UNDER_WAY']);
  expect(await git.get(id)).toMatchObject({ status: 'cloning', operationId });
});

test('a clone that is called off ends at once, and can be begun again', async () => {
  const { user, git } = await newUser();
  const { url } = remoteRepository(product.server);
  const held = holdPacks();
  const { id, operationId } = (await git.clone({ url })).body;
  await waitFor('the clone to ask for a pack', () => held() > 0);
  expect((await user.fetch(`/api/operations/${operationId}/cancel`, { method: 'POST' })).status).toBe(200);
  expect(await git.cloned(id)).toMatchObject({ status: 'failed', error: { code: 'CALLED_OFF' } });
  expect((await git.operation(operationId ?? '')).status).toBe('cancelled');
  product.server.reset();
  expect((await git.retry(id)).status).toBe(200);
  expect((await git.cloned(id)).status).toBe('ready');
});

test('The same idempotency key makes one repository', async () => {
  const { git, drive } = await newUser();
  const { url } = remoteRepository(product.server);
  const [first, second] = [
    await git.clone({ url }, { 'idempotency-key': 'once' }),
    await git.clone({ url }, { 'idempotency-key': 'once' }),
  ];
  expect(second.body.id).toBe(first.body.id);
  const { data } = (await (await drive.send('GET', '/items?path=/')).json()) as { data: unknown[] };
  expect(data).toHaveLength(1);
});

test('404 for another space’s repositories, credentials and computers', async () => {
  const [mine, other] = [await newUser(), await newUser()];
  const { url } = remoteRepository(product.server);
  const { id } = (await mine.git.clone({ url })).body;
  expect((await other.git.send('GET', `/git/${id}`)).status).toBe(404);
  expect((await other.git.retry(id)).status).toBe(404);
  expect((await other.git.send('GET', `/../${mine.user.spaceId}/git/${id}`)).status).toBe(404);
  const credential = await other.git.send<{ id: string }>('POST', '/git/credentials', {
    name: 'theirs',
    host: `localhost:${product.server.port}`,
    secret: 'x',
  });
  expect((await mine.git.clone({ url, credentialId: credential.body.id })).status).toBe(404);
  const { computerId } = (await mine.git.cloned(id)) as { computerId: string };
  expect((await other.git.clone({ url, computerId })).status).toBe(404);
});

test('A server that the lists of the space forbid is not cloned from', async () => {
  const { user, git } = await newUser();
  const { url } = remoteRepository(product.server);
  await user.fetch(`${git.space}/egress`, { method: 'PUT', body: { deny: ['localhost'] } });
  const failed = await git.cloned((await git.clone({ url })).body.id);
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'GIT_REMOTE_FORBIDDEN' } });
  expect(product.server.requests).toEqual([]);
});
