import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto'; // CommonJS: its names are not seen as named exports
import { createGitHosting } from '../../../integrations/gitHosting/index.ts';
import { operator } from '../../../models/audit/audit.ts';
import { connectInstallation } from '../../../models/git/installations.ts';
import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { actorWorkflowId } from '../../../temporal/workflowIds.ts';
import { buildChatUser, type ChatUser } from '../../builders/chat.ts';
import { buildDrive, type TestDrive } from '../../builders/drive.ts';
import { gitOf, localGitServer } from '../../builders/repository.ts';
import { type FakeGitHub, type FakeInstallation, type FakePerson, startFakeGitHub } from '../../fakes/githubServer.ts';
import { commitFiles } from '../../support/gitRepository.ts';
import type { GitServer } from '../../support/gitServer.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('git');

const { History } = proto.temporal.api.history.v1;

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
    ATRIUM_LOG_LEVEL: 'debug',
    ATRIUM_GITHUB_GIT_HOST: `localhost:${server.port}`,
  });
});
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

/** An account with two private repositories, and a space that may use the installation as far as was proven. */
async function hosted(proven: 'all' | { mayWrite: boolean } = 'all') {
  const user = await buildChatUser(product);
  count += 1;
  const installation = github.install(`acme${count}`, ['tool', 'other']);
  for (const { path } of installation.repositories) commitFiles(server.create(`${path}.git`), { 'a.txt': path });
  const person = github.person(`dev${count}`);
  await claim(user, installation, proven, person);
  const git = gitOf(user);
  const [credential] = (await git.send<{ data: { id: string }[] }>('GET', '/git/credentials')).body.data;
  const clone = async (path: string) =>
    git.cloned((await git.clone({ url: server.url(path), credentialId: credential?.id })).body.id);
  return { user, git, installation, person, account: installation.account.login, credentialId: credential?.id, clone };
}

async function claim(
  user: ChatUser,
  installation: FakeInstallation,
  proven: 'all' | { mayWrite: boolean },
  person: FakePerson,
) {
  const { database, config } = product.environment;
  const { name, gitHost, ...provider } = createGitHosting(config).require('tokens');
  const installationId = String(installation.id);
  const facts = await provider.installation(installationId);
  if (facts === undefined) throw new Error('The fake has no such installation.');
  const connecting = { spaceId: user.spaceId, provider: name, gitHost, installationId, facts };
  if (proven === 'all') {
    await connectInstallation(database, { ...connecting, repositories: 'all', provenBy: 'operator' }, operator);
    return;
  }
  const [first] = installation.repositories;
  if (first === undefined) throw new Error('The installation has no repository.');
  person.repositories.set(first.id, proven.mayWrite);
  const provenBy = { id: String(person.id), login: person.login };
  const repositories = [{ ...first, id: String(first.id), ...proven }];
  await connectInstallation(database, { ...connecting, repositories, provenBy }, operator);
}

const tokensOf = ({ id }: FakeInstallation) => github.tokens.filter(({ installationId }) => installationId === id);

test('A private repository is cloned with a token for it alone, which is then revoked', async () => {
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

test('The token is in no row, history or log, whether the clone succeeds or fails', async () => {
  const { clone, installation, account } = await hosted();
  const { id, status } = await clone(`${account}/tool.git`);
  expect(status).toBe('ready');
  // GitHub gives a token, and then the git server has no such repository.
  installation.repositories.push({ id: installation.id + 1_000_000, path: `${account}/missing` });
  const missing = await clone(`${account}/missing.git`);
  expect(missing.status).toBe('failed');
  const tokens = tokensOf(installation).map(({ token }) => token);
  expect(tokens.length).toBeGreaterThan(1);
  const shown = tokens.flatMap((token) => [token, Buffer.from(`x-access-token:${token}`).toString('base64')]);
  const isIn = (text: string) =>
    shown.some((secret) => [secret.slice(0, 60), secret.slice(-60)].some((part) => text.includes(part)));

  // The search covers the right places: the histories of the clones are among them.
  const histories = await waitFor('the clones to be in the list of workflows', async () => {
    const listed = await collectHistories();
    const isListed = (of: string) => listed.some(({ name }) => name === actorWorkflowId('repository', of));
    return isListed(id) && isListed(missing.id) && listed;
  });
  // A sweep may have started another run after the clone.
  const runs = histories.filter(({ name }) => name === actorWorkflowId('repository', id));
  expect(runs.map(({ text }) => text).join()).toContain('cloneMirror');
  const rows = await collectRows();
  expect(rows.find(({ name }) => name === 'git_repositories')?.text).toContain(id);
  const log = { name: 'log', text: product.process.log() };
  expect(log.text).toContain('A step of a repository could not be done.');
  const places = [...histories, ...rows, log];
  expect(places.filter(({ text }) => isIn(text)).map(({ name }) => name)).toEqual([]);
});

async function collectHistories() {
  const { temporal, installation } = product.environment.config;
  const connection = await Connection.connect({ address: temporal.address });
  const client = new Client({ connection, namespace: temporal.namespace });
  const query = `TaskQueue = '${mainTaskQueue(installation)}'`;
  const found = await Array.fromAsync(client.workflow.list({ query }), async ({ workflowId, runId }) => {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    // Payloads are plain JSON, and are in these bytes unchanged.
    return { name: workflowId, text: Buffer.from(History.encode(History.create(history)).finish()).toString('utf8') };
  });
  await connection.close();
  return found;
}

async function collectRows() {
  const { pool } = product.environment.database;
  const [tables] = await pool.query(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
  );
  return Promise.all(
    (tables as { name: string }[]).map(async ({ name }) => {
      const [rows] = await pool.query(`SELECT * FROM ${name}`);
      const cells = (rows as object[]).flatMap((row) => Object.values(row) as unknown[]);
      const texts = cells.map((cell) => (Buffer.isBuffer(cell) ? cell.toString('latin1') : JSON.stringify(cell)));
      return { name, text: texts.join('\n') };
    }),
  );
}

test('A URL without “.git” leads to the same repository', async () => {
  const { clone, account } = await hosted();
  expect((await clone(`${account}/tool`)).status).toBe('ready');
});

test('A clone waits until GitHub knows its new token', async () => {
  const { clone, account } = await hosted();
  github.newTokenMs = 1_500;
  expect((await clone(`${account}/tool.git`)).status).toBe('ready');
});

test('A space reaches only the repositories of an installation that were proven to be for it', async () => {
  const { clone, installation, account } = await hosted({ mayWrite: false });
  expect((await clone(`${account}/tool.git`)).status).toBe('ready');
  expect(await clone(`${account}/other.git`)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringContaining('no access to this repository') },
  });
  expect(tokensOf(installation)).toHaveLength(1);
});

test('A person who has lost a right at GitHub has lost it in Atrium too', async () => {
  const { clone, installation, account, person } = await hosted({ mayWrite: false });
  person.repositories.clear();
  expect(await clone(`${account}/tool.git`)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringContaining('may not do this') },
  });
  // Another person with the same name does not have the right either.
  const namesake = github.person(person.login);
  for (const { id } of installation.repositories) namesake.repositories.set(id, true);
  expect((await clone(`${account}/tool.git`)).status).toBe('failed');
  expect(github.gitRequests.filter(({ path, authorization }) => path.startsWith(account) && authorization)).toEqual([]);
  expect(tokensOf(installation)).toEqual([
    expect.objectContaining({ isRevoked: true }),
    expect.objectContaining({ isRevoked: true }),
  ]);
});

test('A repository that was renamed is not confused with the one that has its name now', async () => {
  const { clone, installation, account } = await hosted({ mayWrite: false });
  const [first, second] = installation.repositories;
  Object.assign(first ?? {}, { path: `${account}/renamed` });
  Object.assign(second ?? {}, { path: `${account}/tool` });
  expect(await clone(`${account}/tool.git`)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringContaining('another name') },
  });
});

test('GitHub’s names in other cases are the same repositories', async () => {
  const { clone, account, installation } = await hosted({ mayWrite: false });
  // The git server of this machine tells cases apart.
  commitFiles(server.create(`${account.toUpperCase()}/Tool.git`), { 'a.txt': 'a' });
  expect((await clone(`${account.toUpperCase()}/Tool.git`)).status).toBe('ready');
  expect(tokensOf(installation)).toHaveLength(1);
});

test('Another space’s installation cannot be used, not even by the id of its credential', async () => {
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

test('A clone is tried again after a temporary failure of GitHub', async () => {
  const { clone, account } = await hosted();
  github.failNext({ status: 503 });
  expect((await clone(`${account}/tool.git`)).status).toBe('ready');
});

test.each([
  ['suspended', (installation: FakeInstallation) => Object.assign(installation, { isSuspended: true })],
  ['gone before its token', (installation: FakeInstallation) => Object.assign(installation, { isGone: true })],
])('An installation that is %s opens nothing, and says so', async (_what, change) => {
  const { clone, installation, account } = await hosted();
  change(installation);
  expect(await clone(`${account}/tool.git`)).toMatchObject({
    status: 'failed',
    error: { code: 'GIT_AUTHENTICATION_FAILED', detail: expect.stringMatching(/GitHub/) },
  });
});

test('Atrium asks GitHub after a notification, but not after a forged or an unrelated one', async () => {
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

full.test('a notification outlives the process that took it', async () => {
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
});
