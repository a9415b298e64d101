import { checkGitHosting } from '../../bin/support/checkGitHosting.ts';
import { loadConfig } from '../../config/index.ts';
import { type FakeGitHub, startFakeGitHub } from '../fakes/githubServer.ts';
import { runAtrium } from '../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let github: FakeGitHub;
let atrium: TestEnvironment;
beforeAll(async () => {
  github = await startFakeGitHub();
  atrium = await createTestEnvironment(github.environment);
  await run('user', 'add', 'ada@example.org');
});
afterAll(async () => {
  await atrium.close();
  await github.stop();
});

const run = (...args: string[]) => runAtrium(args, atrium.environment);
const runJson = async <T = Record<string, unknown>>(...args: string[]) =>
  JSON.parse((await run(...args, '--json')).stdout) as T;

test('the operator lists GitHub installations from all pages, and gives one to a space', async () => {
  github.pageSize = 2;
  const [first, second] = ['acme', 'initech', 'umbrella'].map((login) => github.install(login));
  Object.assign(second ?? {}, { isSuspended: true });
  const listed = await runJson<{ account: string; status: string }[]>('git', 'installations');
  expect(listed.map(({ account, status }) => [account, status])).toEqual([
    ['acme', 'active'],
    ['initech', 'suspended'],
    ['umbrella', 'active'],
  ]);

  const { id: spaceId } = await runJson<{ id: string }>('space', 'add', 'Work');
  const claim = ['git', 'claim', String(first?.id), '--space', spaceId];
  expect(await runJson(...claim)).toEqual({
    ...{ spaceId, installationId: String(first?.id), account: 'acme', status: 'active' },
  });
  expect((await run(...claim)).stdout).toBe(`The space ${spaceId} may use the repositories of acme at GitHub.\n`);
  const { pool } = atrium.database;
  const [rows] = await pool.query('SELECT name, status FROM git_credentials WHERE space_id = ?', [spaceId]);
  expect(rows).toEqual([{ name: 'GitHub acme', status: 'active' }]);
  const [audit] = await pool.query('SELECT user_id AS userId, action FROM audit_entries WHERE target = ?', [
    `github/${first?.id}`,
  ]);
  expect(audit).toEqual(Array(2).fill({ userId: null, action: 'git-installation.connected' }));
});

test('an installation that cannot be claimed is refused with the reason in one line', async () => {
  const { id: installationId } = github.install('hooli');
  for (const [args, said] of [
    [['claim', '999999', '--space', 'spc_none'], 'GitHub knows no installation 999999 of this App.\n'],
    [['claim', String(installationId), '--space', 'spc_none'], 'There is no such space.\n'],
  ] as const) {
    expect(await run('git', ...args)).toMatchObject({ code: 1, output: said });
  }
  expect((await run('git', 'claim', 'acme', '--space', 'spc_none')).output).toContain('is a number');
  const without = { ...atrium.environment, ATRIUM_GITHUB_APP_ID: '' };
  expect((await runAtrium(['git', 'installations'], without)).output).toContain('not set ATRIUM_GITHUB_APP_ID');
});

test('doctor reports whether GitHub accepts the key, and which settings are missing', async () => {
  const doctor = (changes: Record<string, string>) =>
    checkGitHosting(loadConfig({ ...atrium.environment, ...changes }));
  expect(await doctor({})).toMatchObject({
    state: 'ok',
    detail: expect.stringMatching(
      /^the App Atrium of a test, repositories at .*git\/github\/callback; 2 webhook secrets$/,
    ),
  });
  expect((await doctor({ ATRIUM_GITHUB_CLIENT_ID: '' })).detail).toContain('nobody can connect it');
  expect(await doctor({ ATRIUM_GITHUB_APP_ID: '', ATRIUM_GITHUB_PRIVATE_KEY: '' })).toMatchObject({ state: 'off' });
  await expect(doctor({ ATRIUM_GITHUB_APP_ID: '1' })).rejects.toMatchObject({ code: 'GIT_HOSTING_KEY_REFUSED' });
});

test('an invalid key is refused at the start, and the error does not contain it', () => {
  const load = (key: string) => () => loadConfig({ ...atrium.environment, ATRIUM_GITHUB_PRIVATE_KEY: key });
  const broken = '-----BEGIN RSA PRIVATE KEY-----\\nbm90IGEga2V5\\n-----END RSA PRIVATE KEY-----';
  expect(load(broken)).toThrow('ATRIUM_GITHUB_PRIVATE_KEY is not right');
  expect(load(broken)).not.toThrow('bm90');
});
