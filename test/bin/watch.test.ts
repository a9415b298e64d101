import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startWatchedProduct } from '../../bin/support/watchedProduct.ts';
import { codeFolders } from '../../bin/support/watchSources.ts';
import { rules } from '../../scripts/imports/rules.ts';
import { plainEnvironment, runAtrium, startAtrium } from '../support/atrium.ts';
import { createTestEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { waitFor } from '../support/waitFor.ts';

// `npm run dev`.

test('code is watched in all folders that the product may import', () => {
  expect(codeFolders).toEqual(
    Object.keys(rules)
      .filter((folder) => folder !== 'client')
      .sort(),
  );
});

test('every replacement of a file restarts the product, also in a new folder and after a version that ends', async () => {
  const root = temporaryFolder();
  const [deep, entry, part] = [join(root, 'api', 'chat'), join(root, 'bin', 'watched.ts'), 'part.ts'];
  mkdirSync(join(root, 'bin'));
  mkdirSync(deep, { recursive: true });
  const write = (text: string) => {
    writeFileSync(join(root, 'draft'), text);
    renameSync(join(root, 'draft'), join(deep, part));
  };
  write('export const version = 1;');
  writeFileSync(
    entry,
    `import { version } from '../api/chat/${part}';
     setInterval(() => undefined, 1_000);
     console.log('ready at http://version.' + version);`,
  );
  const lines: string[] = [];
  const product = await startWatchedProduct({
    root,
    environment: process.env,
    logFile: join(root, 'log'),
    report: (line) => lines.push(line),
    signal: new AbortController().signal,
  });
  const printed = (text: string) => waitFor(text, () => lines.some((line) => line.includes(text)));
  expect(product.apiUrl).toBe('http://version.1');
  for (const version of [2, 3]) {
    write(`export const version = ${version};`);
    await printed(`run again: http://version.${version}`);
  }
  write("throw new Error('');");
  await printed('have ended (exit code 1)');
  write('export const version = 5;');
  await printed('run again: http://version.5');
  // As git does when it checks out another branch and comes back.
  rmSync(deep, { recursive: true });
  await waitFor('the removal to be noticed', () => lines.filter((line) => line.includes('have ended')).length === 2);
  mkdirSync(deep);
  write('export const version = 6;');
  await printed('run again: http://version.6');
  write('export const version = 7;');
  await printed('run again: http://version.7');
  await product.stop();
});

test('code with a migration that has not run says so', async () => {
  const { environment, database, close } = await createTestEnvironment();
  await database.pool.query("DELETE FROM schema_migrations WHERE name = '0000-drive'");
  const lines: string[] = [];
  const product = await startWatchedProduct({
    root: process.cwd(),
    environment: plainEnvironment({ ...environment, ATRIUM_PORT: '0' }),
    logFile: join(temporaryFolder(), 'log'),
    report: (line) => lines.push(line),
    signal: new AbortController().signal,
  });
  await waitFor('the warning', () => lines.some((line) => line.endsWith('It lacks 0000-drive.')));
  await product.stop();
  await close();
});

test('`up --watch` writes the log to its file, and only lines for a person to the terminal', async () => {
  const dataDir = temporaryFolder();
  const { environment, close } = await createTestEnvironment();
  const settings = { ...environment, ATRIUM_DATA_DIR: dataDir, ATRIUM_PORT: '0', ATRIUM_LOG_LEVEL: 'info' };
  const atrium = startAtrium(['up', '--watch', '--json'], settings);
  await atrium.printed(/"apiUrl"/);
  const { apiUrl, logFile } = JSON.parse(atrium.stdout()) as { apiUrl: string; logFile: string };
  const requestId = (await fetch(`${apiUrl}/api/spaces`)).headers.get('x-request-id') ?? 'none';
  await waitFor('the request to be logged', () => readFileSync(logFile, 'utf8').includes(requestId));
  expect((await runAtrium(['logs', '--id', requestId], settings)).stdout).toContain(requestId);
  expect(atrium.output()).not.toContain('"level":');
  atrium.child.kill('SIGINT');
  expect(await atrium.exited).toEqual({ code: 0, signal: null });
  await close();
});
