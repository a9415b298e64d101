import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { stackEnvironment } from './environment.ts';
import { temporaryFolder } from './folders.ts';
import { chooseDatabase } from './testDatabase.ts';

const run = promisify(execFile);

/** Starts a test run with these variables. Returns the variables that its test files get. */
async function stackOfRun(variables: Record<string, string>): Promise<Record<string, string>> {
  const program = `
    const { startTestStack, stopTestStack } = await import('${new URL('testStack.ts', import.meta.url).pathname}');
    await startTestStack();
    const seen = Object.entries(process.env).filter(([name]) => /DATABASE/.test(name));
    await stopTestStack();
    console.log(JSON.stringify(Object.fromEntries(seen)));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: temporaryFolder(), ...variables },
  });
  return JSON.parse(stdout) as Record<string, string>;
}

test('tests run on the server of ATRIUM_DATABASE_URL, and programs that they start do not inherit that variable', async () => {
  const { ATRIUM_DATABASE_MIGRATION_URL: url = '' } = stackEnvironment();
  const seen = await stackOfRun({ ATRIUM_DATABASE_URL: url });
  expect(seen).toEqual({ ATRIUM_TEST_STACK_DATABASE_URL: url, ATRIUM_TEST_STACK_DATABASE_MIGRATION_URL: url });
});

test('a chosen server that does not answer ends the run, and without a choice the embedded server is used', async () => {
  const folder = temporaryFolder();
  const options = { dataDir: folder, cacheDir: folder, report: () => undefined, signal: new AbortController().signal };
  const nobody = 'mysql://nobody:nothing@127.0.0.1:1/none';
  await expect(chooseDatabase({ ...options, environment: { ATRIUM_DATABASE_URL: nobody } })).rejects.toThrow();
  await expect(chooseDatabase({ ...options, environment: { ATRIUM_TEST_DATABASE: 'other' } })).rejects.toThrow('mysql');
  expect(await chooseDatabase({ ...options, environment: {} })).toBeUndefined();
});
