import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { seccompFilter } from '../../drivers/seccomp/bpf.ts';
import { run } from '../../spawner/spawner.ts';
import { findSystemProgram } from '../../system/programs.ts';
import type { HostContext } from '../context.ts';
import { HostError } from '../hostErrors.ts';
import { requireSystems } from '../machine/systems.ts';

/** Where the program sees the folder, and its credentials. */
export const folderInside = '/work';
export const credentialsInside = '/run/credentials.json';

interface ConfinedProgram {
  /** A folder of the homes' file system, in which the program works. Files there have the owners that it gives them. */
  folder?: string;
  command: readonly string[];
  /** Whether it reaches the host's network. */
  hasNetwork: boolean;
  /** A file that it finds at `credentialsInside`. */
  credentials?: string | undefined;
  timeoutMs: number;
  signal: AbortSignal;
}

/** What it may use beside its time and the quota of the folder. */
const limits = ['--nofile=8192', '--core=0', '--nproc=4096', `--as=${4 * 1_024 ** 3}`];
const temporaryBytes = 64 * 1_048_576;
/** What the owners and rights of files need. Each counts only for the folder. */
const capabilities = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'SETFCAP'];
/** What a client of registries reads. */
const etcFiles = ['ssl', 'hosts', 'resolv.conf', 'nsswitch.conf', 'gai.conf', 'docker/certs.d', 'containers/certs.d'];
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', TMPDIR: '/tmp' };

/**
 * Runs a program that works with what a stranger has made: as the root of a range of users, who is nobody outside, in
 * namespaces of its own, with the system-call filter of computers, and without the host's files except its programs. If
 * this host is killed, the program ends too.
 */
export async function runConfined(context: HostContext, program: ConfinedProgram): Promise<string> {
  const { layout, systems, ownView } = context;
  const { ranges, mounter } = requireSystems({ systems });
  const [bwrap, prlimit, setpriv] = ['bwrap', 'prlimit', 'setpriv'].map(findSystemProgram);
  if (bwrap === undefined || prlimit === undefined || setpriv === undefined || ownView === undefined) {
    throw new HostError('BASES_OFF', 'bwrap, prlimit or setpriv is missing');
  }
  // The users of the range pass through these folders.
  mkdirSync(layout.images, { recursive: true, mode: 0o711 });
  const own = mkdtempSync(join(layout.images, 'run-'));
  chmodSync(own, 0o711);
  const [filter, credentials, target] = ['filter', 'credentials', 'mount'].map((name) => join(own, name)) as [
    string,
    string,
    string,
  ];
  const first = ranges.take(own);
  try {
    writeFileSync(filter, seccompFilter(process.arch === 'arm64' ? 'arm64' : 'x64', { isRoot: true }), { mode: 0o600 });
    writeFileSync(credentials, program.credentials ?? '{}', { mode: 0o600 });
    mkdirSync(target, { mode: 0o700 });
    const inner = [prlimit, ...limits, '--', bwrap, ...sandboxArguments(target, program), '--', ...program.command];
    const words = [filter, credentials, mounter[0] ?? '', program.folder ?? '', target, String(first), ...inner];
    const [file = '', ...args] = [setpriv, '--pdeathsig', 'KILL', ...ownView, '/bin/sh', '-c', script, 'sh', ...words];
    const { timeoutMs, signal } = program;
    return await run(file, args, { timeoutMs, signal });
  } finally {
    rmSync(own, { recursive: true, force: true });
    ranges.free(first);
  }
}

/** Mounts the folder with the owners that it has inside, and becomes the program as their root. */
const script = `filter="$1" credentials="$2" agent="$3" folder="$4" target="$5" first="$6"; shift 6
{ [ -z "$folder" ] || "$agent" mount "$folder" "$target" "$first"; } && exec "$agent" users "$first" "$@" 3< "$filter" 4< "$credentials"`;

function sandboxArguments(target: string, { folder, hasNetwork, credentials }: ConfinedProgram): string[] {
  const temporary = (path: string) => ['--size', String(temporaryBytes), '--tmpfs', path];
  return [
    ...['--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'],
    ...(hasNetwork ? [] : ['--unshare-net']),
    ...['--die-with-parent', '--new-session', '--hostname', 'image'],
    ...Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--ro-bind', '/usr', '/usr'],
    ...['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...(hasNetwork ? etcFiles.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]) : []),
    ...['--proc', '/proc', '--dev', '/dev', ...temporary('/tmp'), ...temporary('/run'), ...temporary('/var')],
    ...['--dir', '/var/tmp'],
    ...(credentials === undefined ? [] : ['--ro-bind-data', '4', credentialsInside]),
    ...(folder === undefined ? ['--chdir', '/tmp'] : ['--bind', target, folderInside, '--chdir', folderInside]),
    ...['--remount-ro', '/'],
    ...['--cap-drop', 'ALL', ...capabilities.flatMap((name) => ['--cap-add', `CAP_${name}`])],
    ...['--seccomp', '3'],
  ];
}
