import type { OwnView } from '../../host/machine/machine.ts';
import { agentFolder, type CellCommand, type SandboxCommand, type SystemMount } from '../../protocol/holderSpec.ts';
import type { ComputerLimits } from '../../types.ts';
import type { DriveFolder, SandboxOptions } from '../driver.ts';
import { seccompFilter } from '../seccomp/bpf.ts';
import { asRootOfUsers, sealed, systemArguments } from './system.ts';
import {
  driveInside,
  environment,
  home,
  hostFiles,
  rootEnvironment,
  temporaryFolders,
  uid,
  viewFiles,
} from './view.ts';

export interface BubblewrapOptions extends SandboxOptions<Pick<ComputerLimits, 'memoryMiB' | 'maxTasks'>> {
  /** Absolute paths. */
  programs: { bwrap: string; prlimit: string; unshare: string };
  /** The host folder with the machine view. */
  viewDir: string;
  /** Set if the holder has its own, limited terminals to share. */
  ownView: OwnView | undefined;
  /** Its root file system, if it has one of its own. */
  system?: SystemMount | undefined;
  /** The drive of its space, if it has that. */
  drive?: DriveFolder | undefined;
}

/**
 * The command line of a sandbox: own namespaces, no host files except `/usr` and parts of `/etc`, filtered system
 * calls.
 */
export function sandboxCommand(options: BubblewrapOptions): SandboxCommand {
  const { system, programs } = options;
  if (system === undefined) {
    return commandOf(options, (inner) => [...limited(options), ...inOuterNetwork(programs.bwrap, inner)]);
  }
  const given = { ...options, system };
  const command = commandOf(options, (inner) => [
    ...limited(options),
    ...asRootOfUsers(programs.unshare, sealed(given, inner)),
  ]);
  return { ...command, descriptors: [...command.descriptors, { kind: 'go' }], system };
}

/**
 * The command line of a cell: a sandbox with the computer's home, in the computer's network. Its processes, terminals
 * and temporary files are its own.
 */
export function cellCommand(options: BubblewrapOptions, nsenter: string): CellCommand {
  const { file, args, ...others } = commandOf(options, (inner) => [
    ...(options.ownView ?? []),
    ...limited(options),
    ...(options.system === undefined ? inner : sealed({ ...options, system: options.system }, inner)),
  ]);
  return { ...others, nsenter, command: [file, ...args] };
}

/** Also limits the uid's tasks, with room for the sandbox itself, in case the cgroup limit does not hold. */
function limited({ programs, limits }: BubblewrapOptions): string[] {
  return [programs.prlimit, '--nofile=8192', '--core=0', `--nproc=${Math.max(limits.maxTasks * 2, 4096)}`];
}

function commandOf(options: BubblewrapOptions, wrap: (inner: string[]) => string[]): SandboxCommand {
  const { system } = options;
  const filter = seccompFilter(options.machine, { isRoot: system !== undefined });
  const env = system === undefined ? environment : rootEnvironment;
  const own = system === undefined ? homeArguments(options) : systemArguments({ ...options, system });
  const inside = [...own, ...commonArguments(env)].map((argument) => `${argument}\0`);
  const [file = '', ...args] = wrap([options.programs.bwrap, '--args', '3', '--', ...options.command]);
  return {
    file,
    args,
    descriptors: [
      { kind: 'write', data: Buffer.from(inside.join('')).toString('base64') },
      { kind: 'info' },
      { kind: 'block' },
      { kind: 'write', data: filter.toString('base64') },
    ],
    home,
    env,
  };
}

function commonArguments(env: Record<string, string>): string[] {
  return [
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    ...['--info-fd', '4', '--block-fd', '5', '--seccomp', '6'],
  ];
}

/** Arguments for a sandbox with the host's programs. */
function homeArguments(options: BubblewrapOptions): string[] {
  const { homeDir, viewDir, agentDir, etcDir, limits, readOnly, ownView, drive } = options;
  return [
    ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'],
    // The kernel ends the sandbox when its holder is killed.
    ...['--die-with-parent', '--disable-userns', '--new-session', '--hostname', 'computer'],
    ...hostFiles(etcDir),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...viewFiles.flatMap((name) => ['--ro-bind', `${viewDir}/${name}`, `/proc/${name}`]),
    ...(ownView !== undefined ? ['--dev-bind', '/dev/pts', '/dev/pts'] : []),
    ...temporaryFolders(limits).flatMap(({ path, mode, bytes }) => [
      ...['--size', String(bytes), '--perms', mode, '--tmpfs', path],
    ]),
    ...['--dir', '/var', '--symlink', '/tmp', '/var/tmp', '--symlink', '/run', '/var/run'],
    ...['--ro-bind', agentDir, agentFolder],
    ...readOnly.flatMap(({ from, to }) => ['--ro-bind', from, to]),
    ...['--bind', homeDir, home],
    ...(drive !== undefined ? ['--bind', drive.folder, driveInside] : []),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--chdir', home, '--uid', String(uid), '--gid', String(uid), '--cap-drop', 'ALL'],
  ];
}

/**
 * Puts the computer's network into an outer sandbox. The user there is root and can open the low ports, and cells can
 * join the network.
 */
function inOuterNetwork(bwrap: string, inner: string[]): string[] {
  const open = 'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start; exec "$@"';
  return [
    bwrap,
    ...['--die-with-parent', '--unshare-user', '--unshare-net', '--uid', '0', '--gid', '0'],
    ...['--cap-add', 'ALL', '--dev-bind', '/', '/'],
    ...['--', '/bin/sh', '-c', open, 'sh', ...inner],
  ];
}
