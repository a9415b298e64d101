import { plainEnvironment, runAtrium } from '../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { inFull } from '../support/inFull.ts';
import { start } from '../support/processes.ts';

const full = inFull('bin');

let atrium: TestEnvironment;

beforeAll(async () => {
  atrium = await createTestEnvironment();
});
afterAll(() => atrium.close());

const run = (...args: string[]) => runAtrium(args, atrium.environment);
const runJson = async (...args: string[]) =>
  JSON.parse((await run(...args, '--json')).stdout) as Record<string, unknown>;

test('the commands create and print a user, a space, a key, a code and a token', async () => {
  expect(await run('token')).toMatchObject({ code: 1, output: expect.stringContaining('user add EMAIL') });

  expect(await runJson('user', 'add', 'Ada@Example.org', '--name', 'Ada')).toEqual({
    id: expect.stringMatching(/^usr_/),
    email: 'ada@example.org',
    name: 'Ada',
    spaceId: expect.stringMatching(/^spc_/),
  });
  expect(await runJson('user', 'add', 'bob@example.org', '--no-space')).toMatchObject({ name: 'bob', spaceId: null });
  expect(await runJson('space', 'add', 'Work')).toEqual({
    id: expect.stringMatching(/^spc_/),
    name: 'Work',
    owner: 'ada@example.org',
  });
  expect(await runJson('key', 'create', '--expires', '2999-01-01')).toEqual({
    id: expect.stringMatching(/^key_/),
    key: expect.stringMatching(/^atr_\w{36}$/),
    expiresAt: '2999-01-01T00:00:00.000Z',
  });
  expect(await runJson('code', '--user', 'ada@example.org')).toMatchObject({
    code: expect.stringMatching(/^(\w{4}-?){4}$/),
  });
  // Without --json, standard output has only the token, for $(…) in a shell.
  expect((await run('token')).stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
});

full.test('the operator adds a member to a space without an invitation', async () => {
  await runJson('user', 'add', 'joined@example.org');
  const { id: spaceId } = await runJson('space', 'add', 'Joined', '--user', 'joined@example.org');
  const { id: other } = await runJson('user', 'add', 'other@example.org');
  const add = ['member', 'add', 'other@example.org', '--space', String(spaceId)];
  expect(await runJson(...add, '--role', 'editor')).toMatchObject({ userId: other, spaceId, role: 'editor' });
  expect(await run(...add)).toMatchObject({ code: 1, output: 'This person is already a member.\n' });
  expect(await run('member', 'add', 'nobody@example.org', '--space', String(spaceId))).toMatchObject({ code: 1 });
  expect(await run(...add, '--role', 'admin')).toMatchObject({ code: 1 });
});

test('a command that fails prints the reason in one line', async () => {
  expect(await run('user', 'add', 'not an address')).toMatchObject({ code: 1, stdout: '' });
  expect(await run('token', '--user', 'nobody@example.org')).toEqual({
    code: 1,
    stdout: '',
    output: 'There is no user nobody@example.org. Add one: npm run -s atrium -- user add nobody@example.org\n',
  });
  for (const args of [
    ['space', 'add', ' '],
    ['space', 'add', 'x'.repeat(201)],
    ['user', 'add', 'grace@example.org', '--name', ''],
    ['key', 'create', '--name', 'a\tb'],
  ]) {
    const { code, output } = await run(...args);
    expect([args, code, output]).toEqual([args, 1, expect.stringMatching(/^error: .* A name has 1 to 200 characters/)]);
  }
  const dataDir = temporaryFolder();
  const line = `Atrium does not run here, with data in ${dataDir}. Start it with "npm start", or set ATRIUM_DATA_DIR if its data are elsewhere`;
  expect(await runAtrium(['token'], { ATRIUM_DATA_DIR: dataDir })).toMatchObject({
    code: 1,
    output: `${line}, or set the addresses of its parts.\n`,
  });
  expect(await runAtrium(['status'], { ATRIUM_DATA_DIR: dataDir })).toMatchObject({ code: 1, output: `${line}.\n` });
  const seed = start('npm', ['run', '-s', 'seed'], { env: plainEnvironment({ ATRIUM_DATA_DIR: dataDir }) });
  expect(await seed.exited).toMatchObject({ code: 1 });
  expect(seed.output()).toBe(`${line}, or set ATRIUM_URL and ATRIUM_TOKEN.\n`);
});

test('a second migrate does nothing', async () => {
  expect(await runJson('migrate')).toEqual({ migrations: [], searchAttributes: [] });
});

test('status exits with 1 if no Atrium runs', async () => {
  expect(await run('status', '--json')).toMatchObject({ code: 1, stdout: '{"state":"stopped","ready":false}\n' });
});

test('doctor checks the configured parts', async () => {
  const { code, stdout } = await run('doctor', '--json', '--timeout', '60');
  const report = JSON.parse(stdout) as { healthy: boolean; checks: { name: string; state: string }[] };
  expect(report.checks.filter((check) => check.state === 'wrong')).toEqual([]);
  expect(report.checks.map((check) => check.name)).toEqual(expect.arrayContaining(['database', 'temporal', 'storage']));
  expect(code).toBe(0);
});

test('doctor says what is wrong with a part', async () => {
  const { code, output } = await runAtrium(['doctor', '--timeout', '60'], {
    ...atrium.environment,
    ATRIUM_S3_BUCKET: 'missing-bucket',
  });
  expect(code).toBe(1);
  expect(output).toMatch(/✗ storage +there is no bucket missing-bucket/);
});

test('doctor points out a setting that does not exist', async () => {
  const { code, output } = await runAtrium(['doctor'], { ...atrium.environment, ATRIUM_PROT: '8081' });
  expect(code).toBe(1);
  expect(output).toMatch(/✗ names of settings +there is no ATRIUM_PROT \(ATRIUM_PORT is meant\?\)/);
});
