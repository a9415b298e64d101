import { agentTasks } from '../../host/confinement/computerCgroup.ts';
import { agentFolder, type SandboxCommand } from '../../protocol/holderSpec.ts';
import type { ComputerLimits } from '../../types.ts';
import { driveInside, environment, home, hostFiles, temporaryFolders, uid } from '../bubblewrap/view.ts';
import type { DriveFolder, SandboxOptions } from '../driver.ts';
import { ociFilter } from '../seccomp/oci.ts';

export interface GvisorOptions extends SandboxOptions<Pick<ComputerLimits, 'memoryMiB' | 'maxTasks' | 'maxProcesses'>> {
  /** Absolute paths. The computer's user must be able to run `runsc`. */
  programs: { bwrap: string; prlimit: string; runsc: string };
  /** The drive of its space, if it has that. */
  drive?: DriveFolder | undefined;
}

const folder = '/run/gvisor';
const devices = ['null', 'zero', 'full', 'random', 'urandom'];
const maxDescriptors = 8_192;

/**
 * The command line of a gVisor sandbox. Its kernel, the sentry, runs in a bubblewrap sandbox that sees no more than the
 * computer may see, so an escape from the sentry gains nothing. The outer sandbox has no filter of ours: the sentry
 * makes namespaces, and has a stricter filter of its own.
 */
export function gvisorCommand(options: GvisorOptions): SandboxCommand {
  const { programs, limits } = options;
  const args = outerArguments(options).map((argument) => `${argument}\0`);
  return {
    file: programs.prlimit,
    args: [
      // The sentry needs descriptors and tasks for everything that runs on it, and raises the soft limit itself.
      ...[`--nofile=${maxDescriptors}:`, '--core=0', `--nproc=${Math.max(limits.maxTasks * 4, 4096)}`],
      ...[programs.bwrap, '--args', '3', '--', `${folder}/runsc`, `--root=${folder}/state`],
      ...['--network=none', '--ignore-cgroups', '--overlay2=none', '--host-uds=none', '--oci-seccomp'],
      ...['run', '--bundle', `${folder}/bundle`, 'computer'],
    ],
    descriptors: [
      { kind: 'write', data: Buffer.from(args.join('')).toString('base64') },
      { kind: 'info' },
      { kind: 'block' },
      { kind: 'write', data: Buffer.from(JSON.stringify(bundleConfig(options))).toString('base64') },
    ],
    home,
    env: environment,
  };
}

function outerArguments({ homeDir, agentDir, etcDir, readOnly, programs, drive }: GvisorOptions): string[] {
  return [
    ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-net', '--unshare-cgroup-try'],
    ...['--die-with-parent', '--new-session', '--hostname', 'computer'],
    ...hostFiles(etcDir),
    ...['--proc', '/proc', '--tmpfs', '/dev'],
    ...devices.flatMap((name) => ['--dev-bind', `/dev/${name}`, `/dev/${name}`]),
    ...['--tmpfs', '/tmp', '--tmpfs', '/run'],
    ...['--dir', '/sys', '--dir', '/var', '--symlink', '/tmp', '/var/tmp', '--symlink', '/run', '/var/run'],
    ...['--ro-bind', agentDir, agentFolder],
    ...readOnly.flatMap(({ from, to }) => ['--ro-bind', from, to]),
    ...['--dir', `${folder}/state`, '--ro-bind', programs.runsc, `${folder}/runsc`],
    ...['--ro-bind-data', '6', `${folder}/bundle/config.json`],
    ...['--bind', homeDir, home],
    ...(drive !== undefined ? ['--bind', drive.folder, driveInside] : []),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--chdir', '/', '--uid', String(uid), '--gid', String(uid), '--cap-drop', 'ALL'],
    ...['--info-fd', '4', '--block-fd', '5'],
  ];
}

/** gVisor's OCI configuration for the computer: the outer sandbox's root, with new kernel file systems. */
function bundleConfig({ limits, readOnly, command, machine }: GvisorOptions) {
  const none: string[] = [];
  const mapping = [{ containerID: uid, hostID: uid, size: 1 }];
  const limit = (name: string, most: number) => ({ type: `RLIMIT_${name}`, soft: most, hard: most });
  const options = ['nosuid', 'nodev'];
  return {
    ociVersion: '1.0.2',
    root: { path: '/', readonly: true },
    hostname: 'computer',
    process: {
      terminal: false,
      user: { uid, gid: uid },
      args: command,
      env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      cwd: home,
      noNewPrivileges: true,
      capabilities: { bounding: none, effective: none, inheritable: none, permitted: none, ambient: none },
      rlimits: [
        limit('NPROC', limits.maxTasks + agentTasks(limits)),
        limit('NOFILE', maxDescriptors),
        limit('CORE', 0),
      ],
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options },
      // Without these entries gVisor would mount its own.
      { destination: '/sys', type: 'tmpfs', source: 'none', options: [...options, 'ro', 'mode=0555'] },
      { destination: '/dev', type: 'tmpfs', source: 'dev' },
      ...temporaryFolders(limits).map(({ path, mode, bytes }) => ({
        destination: path,
        type: 'tmpfs',
        source: 'none',
        options: [...options, `mode=${mode}`, `size=${bytes}`],
      })),
      ...readOnly.map(({ to }) => ({ destination: to, type: 'bind', source: to, options: [...options, 'bind', 'ro'] })),
      // With the drive, which is a mount in it. The kernel refuses to leave that out.
      { destination: home, type: 'bind', source: home, options: [...options, 'rbind', 'rw'] },
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'network', 'user'].map((type) => ({ type })),
      uidMappings: mapping,
      gidMappings: mapping,
      seccomp: ociFilter(machine, { isGvisor: true }),
    },
  };
}
