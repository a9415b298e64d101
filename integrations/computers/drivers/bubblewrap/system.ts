import { statSync } from 'node:fs';
import { agentFolder } from '../../protocol/holderSpec.ts';
import type { BubblewrapOptions } from './sandbox.ts';
import { driveInside, home, temporaryFolders, viewFiles } from './view.ts';

/** The descriptor on which a sandbox waits until its users and its root file system are there. */
const goDescriptor = 7;

/** The host's files in a root file system. The others, such as /etc/passwd, are its own. */
const etcFiles = ['hosts', 'hostname', 'resolv.conf'];

/**
 * What root may do inside: what containers usually allow, and tracing its own processes. Each capability counts only
 * for what belongs to the sandbox's own user namespace. The system-call filter still refuses mounts and namespaces.
 */
const capabilities = [
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
  'SYS_PTRACE',
];

export type SystemOptions = BubblewrapOptions & Required<Pick<BubblewrapOptions, 'system'>>;

/** Mounts of a sandbox with a root file system of its own, each with the path inside. */
function mountsOf({ viewDir, agentDir, etcDir, limits, readOnly, ownView, drive }: SystemOptions): Mount[] {
  return [
    { to: '/proc', args: ['--proc', '/proc'] },
    { to: '/dev', args: ['--dev', '/dev'] },
    ...viewFiles.map((name) => readOnlyMount(`${viewDir}/${name}`, `/proc/${name}`)),
    ...(ownView !== undefined ? [{ to: '/dev/pts', args: ['--dev-bind', '/dev/pts', '/dev/pts'] }] : []),
    ...temporaryFolders(limits).map(({ path, mode, bytes }) => ({
      to: path,
      args: ['--size', String(bytes), '--perms', mode, '--tmpfs', path],
    })),
    ...etcFiles.map((name) => readOnlyMount(`${etcDir}/${name}`, `/etc/${name}`)),
    readOnlyMount(agentDir, agentFolder),
    ...readOnly.map(({ from, to }) => readOnlyMount(from, to)),
    ...(drive !== undefined
      ? [{ to: driveInside, from: drive.folder, args: ['--bind', drive.folder, driveInside] }]
      : []),
  ];
}

interface Mount {
  to: string;
  args: string[];
  /** What of the host is mounted. Undefined: a new file system. */
  from?: string;
}

const readOnlyMount = (from: string, to: string): Mount => ({ to, from, args: ['--ro-bind', from, to] });

/** The paths inside at which something is mounted. */
export function mountPoints(options: SystemOptions): { path: string; isFolder: boolean }[] {
  return mountsOf(options).map(({ to, from }) => ({ path: to, isFolder: from === undefined || isFolder(from) }));
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/**
 * Starts a program in a mount namespace of its own in which only the root file system, the terminals and the drive can
 * be changed: bwrap follows the links of a tenant who changes the mount points meanwhile.
 */
export function sealed({ agentDir, system, ownView, drive }: SystemOptions, inner: string[]): string[] {
  const writable = [
    system.target,
    ...(ownView !== undefined ? ['/dev/pts'] : []),
    ...(drive !== undefined ? [drive.mount] : []),
  ];
  return [`${agentDir}/agent`, 'seal', writable.join(','), ...inner];
}

/** Arguments for bwrap. Its user is root of a user namespace already, and stays so. */
export function systemArguments(options: SystemOptions): string[] {
  return [
    ...['--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'],
    ...['--die-with-parent', '--new-session', '--hostname', 'computer'],
    ...['--bind', options.system.target, '/'],
    ...mountsOf(options).flatMap(({ args }) => args),
    ...['--remount-ro', '/dev', '--chdir', home, '--cap-drop', 'ALL'],
    ...capabilities.flatMap((name) => ['--cap-add', `CAP_${name}`]),
  ];
}

/**
 * Starts a program in a user and a network namespace of its own, as their root. It waits until its holder has given the
 * namespace its users (`SystemMount`).
 */
export function asRootOfUsers(unshare: string, inner: string[]): string[] {
  const begin = `read -r _ <&${goDescriptor} && exec ${goDescriptor}<&- "$@"`;
  return [
    unshare,
    '--user',
    '--net',
    '--mount',
    '--propagation',
    'slave',
    '--',
    '/bin/sh',
    '-c',
    begin,
    'sh',
    ...inner,
  ];
}
