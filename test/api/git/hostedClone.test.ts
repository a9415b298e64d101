import { createGitHosting } from '../../../integrations/gitHosting/index.ts';
import { operator } from '../../../models/audit.ts';
import { connectInstallation } from '../../../models/git/installations.ts';
import { buildChatUser, type ChatUser } from '../../builders/chat.ts';
import { buildDrive, type TestDrive } from '../../builders/drive.ts';
import { gitOf, localGitServer } from '../../builders/repository.ts';
import { type FakeGitHub, type FakeInstallation, startFakeGitHub } from '../../fakes/githubServer.ts';
import { commitFiles } from '../../support/gitRepository.ts';
import type { GitServer } from '../../support/gitServer.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

let github: FakeGitHub;
let server: GitServer;
let product: TestDrive;

beforeAll(async () => {
  github = await startFakeGitHub();
  const local = await localGitServer();
  server = local.server;
  product = await buildDrive({
    ...local.environment,
    ...github.environment,
    ...hurriedSweeper,
    ATRIUM_GITHUB_GIT_HOST: `localhost:${server.port}`,
  });
}, 60_000);
afterAll(async () => {
  await product.close();
  await github.stop();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => {
  server.reset();
  github.guard(server);
  github.newTokenMs = 0;
});

let count = 0;

/** An account with two private repositories, and a space that may use the installation as far as is said. */
async function hosted(proven: 'all' | { mayWrite: boolean } = 'all') {
  const user = await buildChatUser(product);
  count += 1;
  const installation = github.install(`acme${count}`, ['tool', 'other']);
  for (const { path } of installation.repositories) commitFiles(server.create(`${path}.git`), { 'a.txt': path });
  await claim(user, installation, proven);
  const git = gitOf(user);
  const [credential] = (await git.send<{ data: { id: string }[] }>('GET', '/git/credentials')).body.data;
  const clone = async (path: string) =>
    git.cloned((await git.clone({ url: server.url(path), credentialId: credential?.id })).body.id);
  return { user, git, installation, account: installation.account.login, credentialId: credential?.id, clone };
}

async function claim(user: ChatUser, installation: FakeInstallation, proven: 'all' | { mayWrite: boolean }) {
  const { database, config } = product.environment;
  const { name, gitHost, ...provider } = createGitHosting(config).require('tokens');
  const installationId = String(installation.id);
  const facts = await provider.installation(installationId);
  if (facts === undefined) throw new Error('The fake has no such installation.');
  const repositories =
    proven === 'all'
      ? proven
      : installation.repositories.slice(0, 1).map(({ id, path }) => ({ id: String(id), path, ...proven }));
  const connecting = { spaceId: user.spaceId, provider: name, gitHost, installationId, facts, repositories };
  await connectInstallation(database, { ...connecting, proof: 'operator', provenBy: 'test' }, operator);
}

const tokensOf = ({ id }: FakeInstallation) => github.tokens.filter(({ installationId }) => installationId === id);

test('a private repository is cloned with a token for it alone, which then ends', async () => {
  const { clone, installation, account } = await hosted();
  expect(await clone(`${account}/tool.git`)).toMatchObject({ status: 'ready', contents: { files: 1 } });
  expect(tokensOf(installation)).toEqual([
    expect.objectContaining({
      repositoryIds: [installation.repositories[0]?.id],
      permissions: { contents: 'read', metadata: 'read' },
      isRevoked: true,
    }),
  ]);
  const shown = github.gitRequests.filter(({ path }) => path === `${account}/tool`).map((one) => one.authorization);
  const [token] = tokensOf(installation);
  const basic = `Basic ${Buffer.from(`x-access-token:${token?.token}`).toString('base64')}`;
  expect(new Set(shown)).toEqual(new Set([undefined, basic]));
});

test('the token is in no row, and in no workflow’s history', async () => {
  const { clone, installation, account, user } = await hosted();
  const { id } = await clone(`${account}/tool.git`);
  const [{ token } = { token: 'none' }] = tokensOf(installation);
  const { pool } = product.environment.database;
  const queries = [
    'SELECT * FROM git_credentials WHERE space_id = ?',
    'SELECT * FROM git_repositories WHERE space_id = ?',
  ];
  for (const query of [...queries, 'SELECT * FROM operations WHERE space_id = ?']) {
    const [rows] = await pool.query(query, [user.spaceId]);
    expect(JSON.stringify(rows)).not.toContain(token.slice(0, 40));
  }
  expect(id).toMatch(/^itm_/);
});

test('without “.git” it is the same repository', async () => {
  const { clone, account } = await hosted();
  expect((await clone(`${account}/tool`)).status).toBe('ready');
});

test('a new token that GitHub does not know for a while is waited for', async () => {
  const { clone, account } = await hosted();
  github.newTokenMs = 1_500;
  expect((await clone(`${account}/tool.git`)).status).toBe('ready');
});

test('of an installation, a space reaches what was proven to be for it, and nothing else', async () => {
  const { clone, installation, account } = await hosted({ mayWrite: false });
  expect((await clone(`${account}/tool.git`)).status).toBe('ready');
  expect(await clone(`${account}/other.git`)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringContaining('no access to this repository') },
  });
  expect(tokensOf(installation)).toHaveLength(1);
});

test('another space’s installation is of no use, not even by its credential’s id', async () => {
  const mine = await hosted();
  const other = await hosted();
  const refused = await other.git.clone({
    url: server.url(`${mine.account}/tool.git`),
    credentialId: mine.credentialId,
  });
  expect([refused.status, refused.code]).toEqual([404, 'NOT_FOUND']);
  const elsewhere = await other.git.clone({
    url: server.url(`${mine.account}/tool.git`),
    credentialId: other.credentialId,
  });
  expect([elsewhere.status, elsewhere.code]).toEqual([422, 'GIT_CREDENTIAL_ELSEWHERE']);
  expect(tokensOf(mine.installation)).toEqual([]);
});

test('GitHub’s trouble passes: the clone is tried again', async () => {
  const { clone, account } = await hosted();
  github.failNext({ status: 503 });
  expect((await clone(`${account}/tool.git`)).status).toBe('ready');
});

test.each([
  ['suspended', (installation: FakeInstallation) => Object.assign(installation, { isSuspended: true })],
  ['gone before its token', (installation: FakeInstallation) => Object.assign(installation, { isGone: true })],
])('one that is %s opens nothing, and says so', async (_what, change) => {
  const { clone, installation, account } = await hosted();
  change(installation);
  expect(await clone(`${account}/tool.git`)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringMatching(/GitHub/) },
  });
});

test('a notification has GitHub asked; a forged one, and one of something else, do not', async () => {
  const { git, installation } = await hosted();
  const statusNow = async () =>
    (await git.send<{ data: { status: string }[] }>('GET', '/git/credentials')).body.data[0]?.status;
  const body = { action: 'suspend', installation: { id: installation.id } };
  const asked = () => github.requests.filter(({ path }) => path === `/app/installations/${installation.id}`).length;
  const before = asked();
  installation.isSuspended = true;
  expect((await github.event(product.url, 'installation', body, 'a wrong secret')).status).toBe(400);
  expect((await github.event(product.url, 'push', body)).status).toBe(200);
  const [rows] = await product.environment.database.pool.query(
    'SELECT COUNT(*) AS due FROM git_installations WHERE installation_id = ? AND due_at <= ?',
    [String(installation.id), new Date()],
  );
  expect([rows, asked(), await statusNow()]).toEqual([[{ due: 0 }], before, 'active']);

  expect((await github.event(product.url, 'installation', body)).status).toBe(200);
  await waitFor('the credential to be suspended', async () => (await statusNow()) === 'suspended');
  installation.isSuspended = false;
  expect((await github.event(product.url, 'installation_repositories', body)).status).toBe(200);
  await waitFor('the credential to be active again', async () => (await statusNow()) === 'active');
});

test('a notification outlives the process that took it', async () => {
  const { git, installation } = await hosted();
  installation.isSuspended = true;
  const body = { action: 'suspend', installation: { id: installation.id } };
  const asked = () => github.requests.filter(({ path }) => path === `/app/installations/${installation.id}`).length;
  const before = asked();
  github.failNext('hold');
  expect((await github.event(product.url, 'installation', body)).status).toBe(200);
  await waitFor('GitHub to be asked', () => asked() > before);
  await product.process.kill('SIGKILL');
  await product.restart();
  await waitFor('the credential to be suspended', async () => {
    const { data } = (await git.send<{ data: { status: string }[] }>('GET', '/git/credentials')).body;
    return data[0]?.status === 'suspended';
  });
}, 60_000);
