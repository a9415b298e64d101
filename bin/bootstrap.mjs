// This file runs first in a fresh clone. So it is plain JavaScript without dependencies, and runs on any Node from 20
// on. It installs missing or stale dependencies, then hands over to Node 24, which they include.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitForLock } from '../stack/fileLock.mjs';
import { nodeFlags } from './nodeFlags.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const parentPollMs = 250;
const stopping = new AbortController();
let child;

/** Prints one line that says what to do, and exits. */
function fail(message) {
  console.error(message);
  process.exit(1);
}

/**
 * Runs a program in our process group and waits for its end. Where the machine has `setpriv`, the kernel sends the
 * program SIGTERM if this process is killed.
 */
function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(
      (path) => process.platform === 'linux' && existsSync(path),
    );
    const [program, ...rest] =
      setpriv === undefined ? [command, ...args] : [setpriv, '--pdeathsig', 'TERM', '--', command, ...args];
    child = spawn(program, rest, { cwd: root, stdio: 'inherit', ...options });
    child.once('error', (error) => fail(`${command} could not be run: ${error.message}`));
    child.once('exit', (code, signal) =>
      resolve(code ?? 128 + (signal === 'SIGINT' ? 2 : signal === 'SIGKILL' ? 9 : 15)),
    );
  });
}

/**
 * Whether node_modules matches package-lock.json. npm writes `.package-lock.json` at the very end of an installation.
 */
function isInstalled() {
  try {
    const read = (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
    const wanted = read('package-lock.json');
    const installed = read('node_modules/.package-lock.json');
    return Object.entries(wanted).every(([path, entry]) => {
      if (path === '') return true;
      const found = installed[path];
      // Packages for other platforms are optional and absent.
      if (found === undefined) return entry.optional === true || entry.devOptional === true || entry.peer === true;
      return found.version === entry.version && found.integrity === entry.integrity;
    });
  } catch {
    return false;
  }
}

async function install() {
  if (isInstalled()) return;
  const lock = await waitForLock(join(root, '.atrium', 'install.lock'), {
    signal: stopping.signal,
    onWait: (owner) => console.error(`Waiting for process ${owner.pid}, which installs the dependencies …`),
  });
  try {
    if (!isInstalled()) await installFromLockfile();
  } finally {
    lock.release();
  }
}

/**
 * Runs `npm ci` in a fresh clone and after an interrupted installation. Otherwise runs `npm install`, which changes
 * only the packages that changed in the lockfile, so an Atrium that runs from this folder keeps its modules.
 */
async function installFromLockfile() {
  const unfinished = join(root, '.atrium', 'install.unfinished');
  const isFresh = existsSync(unfinished) || !existsSync(join(root, 'node_modules', '.package-lock.json'));
  const command = isFresh ? ['ci'] : ['install', '--no-save'];
  console.error(`Installing the dependencies (npm ${command[0]}) …`);
  const begin = Date.now();
  writeFileSync(unfinished, '');
  const args = [...command, '--include=dev', '--include=optional', '--no-fund', '--no-audit', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  const code = npm === undefined ? await run('npm', args, output) : await run(process.execPath, [npm, ...args], output);
  if (stopping.signal.aborted) return;
  if (code !== 0) fail('The dependencies could not be installed: npm says above why. Mend that, then start again.');
  rmSync(unfinished);
  console.error(`Dependencies installed (${Math.round((Date.now() - begin) / 1000)} s)`);
}

// npm's output is progress. It goes to standard error, since standard output is for the answer of the command itself.
const output = { stdio: ['ignore', 2, 2] };

/** The machine's Node where it is new enough, otherwise the pinned one in node_modules. */
function findNode() {
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  const pinned = join(root, 'node_modules', '.bin', 'node');
  if (existsSync(pinned)) return pinned;
  return fail(
    `There is no pinned Node 24 for ${process.platform}-${process.arch}. Install Node 24 or later, then start again.`,
  );
}

function commandLine(args) {
  if (args[0] !== 'test') return [...nodeFlags, join(root, 'bin', 'atrium.ts'), ...args];
  return [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), ...args.slice(1)];
}

/** The next start reuses the code that Node compiled in this one. That saves a third of a start's work. */
function withCompileCache(env) {
  return { NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'atrium', 'compiled'), ...env };
}

/**
 * Signals come from the terminal, from npm or from a supervisor. Each is passed on to the child, which stops in order.
 */
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    stopping.abort();
    child?.kill(signal);
  });
}

/** When npm is killed, its script is not told. Our parent process changes then, and we stop. */
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid === parent || stopping.signal.aborted) return;
    stopping.abort();
    child?.kill('SIGTERM');
  }, parentPollMs).unref();
}

if (Number(process.versions.node.split('.')[0]) < 20)
  fail('Atrium needs Node 20 or later. Install it, then start again.');
try {
  await install();
} catch (error) {
  if (!stopping.signal.aborted) throw error;
}
if (stopping.signal.aborted) process.exit(130);
process.exit(
  await run(findNode(), commandLine(process.argv.slice(2)), { cwd: process.cwd(), env: withCompileCache(process.env) }),
);
