import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { renameDurablySync } from '../disk/durable.ts';
import { CommandError, runCommand } from './commands.ts';
import { findProgram, isExecutable, type StackContext } from './context.ts';
import { downloadTemporal } from './downloads.ts';
import { StackError } from './errors.ts';
import { waitForLock } from './fileLock.mjs';
import { isReachableByOthers, makeSharedFolder, prepareDataDir } from './folders.ts';
import { canInstall } from './install.ts';
import { timed } from './report.ts';
import { serviceLog } from './services.ts';

/** A program that Go can build. */
export interface GoProgram {
  name: string;
  title: string;
  version: string;
  /** A module of Go's registry, or a folder of ours. */
  source: { module: string } | { folder: string };
  buildTime: string;
  /** The system that it runs on, as Go names it. Undefined: this one. */
  system?: string;
}

/** The last version that `go install` can build. */
const temporal: GoProgram = {
  name: 'temporal',
  title: 'the Temporal server',
  version: '1.5.1',
  source: { module: 'github.com/temporalio/cli/cmd/temporal' },
  buildTime: 'about 4 minutes on 2 cores',
};

const storeSource = join(import.meta.dirname, 'store');

const objectStore: GoProgram = {
  name: 'atrium-store',
  title: 'the object store',
  get version() {
    return hashOf(storeSource);
  },
  source: { folder: storeSource },
  buildTime: 'about 2 minutes on 2 cores',
};

const agentSource = join(import.meta.dirname, '..', 'integrations', 'computers', 'agent');

const agent: GoProgram = {
  name: 'atrium-agent',
  title: 'the agent of computers',
  get version() {
    return hashOf(agentSource);
  },
  source: { folder: agentSource },
  buildTime: 'up to a minute on 2 cores',
  // A container's, where this machine has another.
  system: 'linux',
};

const driveSource = join(import.meta.dirname, '..', 'integrations', 'computers', 'drivefs');

const driveDaemon: GoProgram = {
  name: 'atrium-drivefs',
  title: 'the drive of computers',
  get version() {
    return hashOf(driveSource);
  },
  source: { folder: driveSource },
  buildTime: 'up to a minute on 2 cores',
};

/** The path of the `temporal` command: the machine's own, a cached one, a download, or a new build. */
export async function getTemporal(context: StackContext): Promise<string> {
  return getProgram(context, temporal, downloadTemporal);
}

/** The path of the `atrium-store` command: the machine's own, a cached one, or a new build. */
export async function getObjectStore(context: StackContext): Promise<string> {
  return getProgram(context, objectStore);
}

/** The path of the agent of computers: the machine's own, a cached one, or a new build. */
export async function getAgent(context: BuildContext): Promise<string> {
  return getProgram(context, agent);
}

/** The path of the program that shows computers their drive: the machine's own, a cached one, or a new build. */
export async function getDriveDaemon(context: BuildContext): Promise<string> {
  return getProgram(context, driveDaemon);
}

/** For `atrium doctor`: the path of a program of the stack, or how a start would get it. */
export function describeProgram(
  name: string,
  { cacheDir, environment }: Pick<StackContext, 'cacheDir' | 'environment'>,
): { missing: boolean; detail: string } {
  const found = findProgram(name, environment);
  if (found !== undefined) return { missing: false, detail: found };
  const program = [temporal, objectStore, agent, driveDaemon].find((candidate) => candidate.name === name);
  if (program === undefined) {
    return canInstall({ environment })
      ? { missing: false, detail: 'missing; "npm start" installs it' }
      : { missing: true, detail: 'missing; install it (Debian and Ubuntu: apt-get install mariadb-server-core)' };
  }
  const cached = join(cacheDir, `${name}-${program.version}`);
  if (isExecutable(cached)) return { missing: false, detail: cached };
  return findProgram('go', environment) === undefined
    ? { missing: true, detail: 'missing, and so is Go, which could build it; install either of them' }
    : { missing: false, detail: `missing; "npm start" gets it (${program.buildTime})` };
}

type BuildContext = Omit<StackContext, 'servicesDir' | 'ports' | 'bucket'>;

type Download<C> = (context: C, folder: string, version: string) => Promise<string | undefined>;

/** The path of a program: the machine's own, a cached one, a download, or a new build. */
export async function getProgram<C extends BuildContext>(
  context: C,
  program: GoProgram,
  download?: Download<C>,
): Promise<string> {
  const onPath = findProgram(program.name, context.environment);
  if (onPath !== undefined) return shared(onPath);
  const cached = join(context.cacheDir, `${program.name}-${program.version}`);
  if (isExecutable(cached)) return shared(cached);
  prepareDataDir(context.dataDir); // for the log
  mkdirSync(context.cacheDir, { recursive: true });

  // Two starts may want the program at once (`npm start` beside `npm test`). One gets it; the other waits and finds it.
  const lock = await waitForLock(`${cached}.lock`, {
    signal: context.signal,
    onWait: (owner) => context.report(`Waiting for process ${owner.pid}, which is getting ${program.title} …`),
  });
  try {
    if (isExecutable(cached)) return shared(cached);
    // A folder on the same file system, so that one rename delivers the finished program. A reader never sees a partial
    // one.
    removeLeftovers(context.cacheDir, program.name);
    const folder = mkdtempSync(join(context.cacheDir, `.${program.name}-`));
    try {
      const made = (await download?.(context, folder, program.version)) ?? (await build(context, program, folder));
      chmodSync(made, 0o755); // regardless of the umask, since another user may have to run it
      renameDurablySync(made, cached);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    return shared(cached);
  } finally {
    lock.release();
  }
}

async function build(context: BuildContext, program: GoProgram, folder: string): Promise<string> {
  const go = findProgram('go', context.environment);
  if (go === undefined) {
    throw new StackError(
      `The program "${program.name}" is missing, and so is Go, which could build it. Install either of them, then start again.`,
    );
  }
  const logFile = serviceLog(context, `build-${program.name}`);
  // Needs no C compiler. Go's scratch files go to a folder that is removed if the start is given up.
  const environment = {
    ...context.environment,
    GOBIN: folder,
    GOTMPDIR: folder,
    CGO_ENABLED: '0',
    GOFLAGS: '-trimpath -buildvcs=false',
    GOWORK: 'off',
    ...(program.system !== undefined && { GOOS: program.system }),
  };
  const { source } = program;
  const made = join(folder, program.name);
  const flags = '-ldflags=-s -w';
  const what =
    'module' in source ? ['install', flags, `${source.module}@v${program.version}`] : ['build', flags, '-o', made, '.'];
  try {
    await timed(
      context.report,
      {
        announce: `Building ${program.title} with Go, once for this user (${program.buildTime})`,
        done: `Built ${program.title}`,
      },
      () =>
        runCommand(go, what, {
          logFile,
          environment,
          signal: context.signal,
          cwd: 'module' in source ? folder : source.folder,
        }),
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new StackError(`${program.name} could not be built: ${error.reason} — the whole log is ${logFile}`);
  }
  return made;
}

/** The version of a source folder. A change gives another version, which is built again. */
function hashOf(folder: string): string {
  const hash = createHash('sha256');
  const names = readdirSync(folder).filter((name) => /\.(go|mod|sum)$/.test(name) && !name.endsWith('_test.go'));
  for (const name of names.toSorted()) hash.update(`${name}\0`).update(readFileSync(join(folder, name)));
  return hash.digest('hex').slice(0, 12);
}

/** Removes the files of a killed build. No other process works there, since this one holds the lock. */
function removeLeftovers(cacheDir: string, name: string): void {
  for (const entry of readdirSync(cacheDir)) {
    if (entry.startsWith(`.${name}-`)) rmSync(join(cacheDir, entry), { recursive: true, force: true });
  }
}

/**
 * A path at which the services' users can run the program. They cannot enter root's cache folder. For them a hard link
 * to the file, or a copy where links do not reach, is made under /var/lib/atrium.
 */
export function shared(program: string): string {
  if (process.getuid?.() !== 0 || isReachableByOthers(program)) return program;
  const { size, mtimeMs, mode } = statSync(program);
  const version = [size, Math.round(mtimeMs)].map((number) => number.toString(36)).join('-');
  const target = join(makeSharedFolder('programs'), `${basename(program)}-${version}`);
  if (isExecutable(target)) return target;
  const temporary = `${target}.${process.pid}`;
  rmSync(temporary, { force: true });
  try {
    if ((mode & 0o005) !== 0o005) throw new Error('Others may not run this file, and a link to it is no different.');
    linkSync(program, temporary);
  } catch {
    copyFileSync(program, temporary);
    chmodSync(temporary, 0o755);
  }
  renameDurablySync(temporary, target);
  return target;
}
