import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainEnvironment } from '../support/atrium.ts';
import { temporaryFolder } from '../support/folders.ts';
import { processesWith, start, until } from '../support/processes.ts';

const root = join(import.meta.dirname, '..', '..');

/** A program in place of npm: it takes a moment, logs its run, and writes what `npm ci` writes. */
const fakeNpm = `
  const { appendFileSync, copyFileSync, mkdirSync } = require('node:fs');
  appendFileSync('npm-runs', process.argv.slice(2).join(' ') + '\\n');
  setTimeout(() => {
    if (process.env.FAKE_NPM === 'fail') { console.error('npm error network'); process.exit(1); }
    mkdirSync('node_modules', { recursive: true });
    copyFileSync('package-lock.json', 'node_modules/.package-lock.json');
  }, process.env.FAKE_NPM === 'hang' ? 60_000 : 200);
`;

const lockfile = (version: string) =>
  JSON.stringify({
    packages: {
      '': {},
      'node_modules/a': { version, integrity: version },
      'node_modules/a-arm64': { version, optional: true },
    },
  });

/** A fresh clone with only the bootstrap. Its command line prints its arguments and signals. */
function createClone(): string {
  const folder = temporaryFolder();
  for (const name of ['bin', 'stack']) mkdirSync(join(folder, name));
  copyFileSync(join(root, 'bin/bootstrap.mjs'), join(folder, 'bin/bootstrap.mjs'));
  copyFileSync(join(root, 'bin/nodeFlags.mjs'), join(folder, 'bin/nodeFlags.mjs'));
  copyFileSync(join(root, 'stack/fileLock.mjs'), join(folder, 'stack/fileLock.mjs'));
  writeFileSync(join(folder, 'package-lock.json'), lockfile('1.0.0'));
  writeFileSync(join(folder, 'npm.cjs'), fakeNpm);
  writeFileSync(
    join(folder, 'bin/atrium.ts'),
    `const args: string[] = process.argv.slice(2);
     if (args[0] === 'wait') {
       setInterval(() => {}, 1000);
       process.on('SIGTERM', () => setTimeout(() => { console.log('stopped in order'); process.exit(7); }, 50));
     }
     // Last: the test sends its signals as soon as it reads this.
     console.log('atrium', ...args);
     if (args[0] === 'exit') process.exit(Number(args[1]));`,
  );
  return folder;
}

function bootstrap(clone: string, args: string[], variables: Record<string, string> = {}) {
  const env = plainEnvironment({ npm_execpath: join(clone, 'npm.cjs'), npm_lifecycle_event: undefined, ...variables });
  return start(process.execPath, [join(clone, 'bin/bootstrap.mjs'), ...args], { cwd: clone, env });
}

const npmRuns = (clone: string) => readFileSync(join(clone, 'npm-runs'), 'utf8').trim().split('\n').length;

test('dependencies are installed only if they are missing or stale', async () => {
  const clone = createClone();
  const first = bootstrap(clone, ['hello']);
  expect(await first.exited).toEqual({ code: 0, signal: null });
  expect(first.stdout()).toBe('atrium hello\n');
  expect(first.output()).toMatch(/^Installing the dependencies \(npm ci\) …\nDependencies installed \(\d+ s\)\n/);
  expect(readFileSync(join(clone, 'npm-runs'), 'utf8')).toMatch(/^ci --include=dev/);

  await bootstrap(clone, ['hello']).exited;
  expect(npmRuns(clone)).toBe(1);

  writeFileSync(join(clone, 'package-lock.json'), lockfile('1.0.1'));
  await bootstrap(clone, ['hello']).exited;
  expect(npmRuns(clone)).toBe(2);
  // Not `npm ci`, which would remove the modules of a running Atrium.
  expect(readFileSync(join(clone, 'npm-runs'), 'utf8')).toMatch(/\ninstall --no-save/);

  rmSync(join(clone, 'node_modules'), { recursive: true });
  await bootstrap(clone, ['hello']).exited;
  expect(npmRuns(clone)).toBe(3);
});

test('two simultaneous starts install the dependencies once', async () => {
  const clone = createClone();
  const both = [bootstrap(clone, ['one']), bootstrap(clone, ['other'])];
  for (const process of both) expect(await process.exited).toEqual({ code: 0, signal: null });
  expect(npmRuns(clone)).toBe(1);
  expect(both.map((process) => process.output()).join('')).toContain('which installs the dependencies …');
});

test('a failed installation of dependencies ends with one line and code 1', async () => {
  const failed = bootstrap(createClone(), ['hello'], { FAKE_NPM: 'fail' });
  expect(await failed.exited).toEqual({ code: 1, signal: null });
  expect(failed.output()).toContain('The dependencies could not be installed: npm says above why.');
  expect(failed.stdout()).toBe('');
});

test('Ctrl-C during the installation leaves no process and no lock', async () => {
  const clone = createClone();
  const process = bootstrap(clone, ['hello'], { FAKE_NPM: 'hang' });
  await until(() => existsSync(join(clone, 'npm-runs')));
  process.child.kill('SIGINT');
  expect(await process.exited).toEqual({ code: 130, signal: null });
  expect(processesWith(clone)).toEqual([]);
  expect(existsSync(join(clone, '.atrium/install.lock'))).toBe(false);
});

test('after a failed installation, dependencies are installed from scratch', async () => {
  const clone = createClone();
  await bootstrap(clone, ['hello']).exited;
  writeFileSync(join(clone, 'package-lock.json'), lockfile('1.0.1'));
  await bootstrap(clone, ['hello'], { FAKE_NPM: 'fail' }).exited;
  await bootstrap(clone, ['hello']).exited;
  const commands = readFileSync(join(clone, 'npm-runs'), 'utf8').match(/^\w+/gm);
  expect(commands).toEqual(['ci', 'install', 'ci']);
});

test('the bootstrap exits with the exit code of the command', async () => {
  expect(await bootstrap(createClone(), ['exit', '3']).exited).toEqual({ code: 3, signal: null });
});

test('the bootstrap passes a signal to the command, and exits with its exit code', async () => {
  const process = bootstrap(createClone(), ['wait']);
  await process.printed(/atrium wait/);
  process.child.kill('SIGTERM');
  expect(await process.exited).toEqual({ code: 7, signal: null });
  expect(process.output()).toContain('stopped in order');
});

test('kill -9 of the bootstrap stops the command in order', async () => {
  const clone = createClone();
  const process = bootstrap(clone, ['wait']);
  await process.printed(/atrium wait/);
  process.child.kill('SIGKILL');
  await process.exited;
  expect(process.output()).toContain('stopped in order');
  expect(processesWith(clone)).toEqual([]);
});

test('kill -9 of npm stops the command in order', async () => {
  const clone = createClone();
  const command = `"${process.execPath}" "${join(clone, 'bin/bootstrap.mjs')}" wait & wait`;
  const npm = start('/bin/sh', ['-c', command], {
    cwd: clone,
    env: plainEnvironment({ npm_execpath: join(clone, 'npm.cjs'), npm_lifecycle_event: 'start' }),
  });
  await npm.printed(/atrium wait/);
  npm.child.kill('SIGKILL');
  await npm.exited;
  expect(npm.output()).toContain('stopped in order');
  expect(processesWith(clone)).toEqual([]);
});
