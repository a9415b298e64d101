import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ComputerLimits } from '../../types.ts';

/** The home's path inside a computer. */
export const home = '/home/user';
/** Where the drive of its space is. */
export const driveInside = `${home}/drive`;
/** The uid of a computer's one user, as seen inside. */
export const uid = 1000;

/** Variables that every process gets besides the computer's own. */
export const environment: Record<string, string> = {
  PATH: '/home/user/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: home,
  USER: 'user',
  LOGNAME: 'user',
  SHELL: '/bin/bash',
  LANG: 'C.UTF-8',
};

/** The same in a root file system of its own, where processes are root. */
export const rootEnvironment: Record<string, string> = { ...environment, USER: 'root', LOGNAME: 'root' };

const fromEtc = ['ssl', 'alternatives', 'fonts', 'ld.so.cache', 'X11', 'xdg', 'chromium.d'];
/** The files that {@link writeEtc} makes. */
export const ownEtc = ['passwd', 'group', 'hosts', 'hostname', 'nsswitch.conf', 'resolv.conf'];

/** Arguments for bwrap: all files of the host that a sandbox sees. */
export function hostFiles(etcDir: string): string[] {
  return [
    ...['--ro-bind', '/usr', '/usr'],
    ...['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...fromEtc.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...ownEtc.flatMap((name) => ['--ro-bind', `${etcDir}/${name}`, `/etc/${name}`]),
  ];
}

/** Temporary files count as memory. Together they leave some memory free, so that a full computer can be cleared up. */
export function temporaryFolders({ memoryMiB }: Pick<ComputerLimits, 'memoryMiB'>) {
  return [
    { path: '/dev/shm', mode: '1777', share: 1 / 4 },
    { path: '/tmp', mode: '1777', share: 1 / 2 },
    { path: '/run', mode: '0755', share: 1 / 16 },
  ].map(({ share, ...folder }) => ({ ...folder, bytes: Math.ceil(memoryMiB * 1024 * 1024 * share) }));
}

/**
 * Files in /proc that tell programs how large their machine is. The holder writes them
 * (`holder/sandboxes/machineView.ts`).
 */
export const viewFiles = ['meminfo', 'cpuinfo', 'stat'] as const;

/** The number of cores as programs see it: rounded up, at least one. */
export function coresOf({ cpuMilli }: Pick<ComputerLimits, 'cpuMilli'>): number {
  return Math.max(1, Math.ceil(cpuMilli / 1_000));
}

/** Variables that tell programs the computer's limits. `nproc` reads `OMP_NUM_THREADS`. */
export function limitVariables(
  limits: Pick<ComputerLimits, 'cpuMilli' | 'memoryMiB' | 'diskMiB'>,
): Record<string, string> {
  const cores = String(coresOf(limits));
  return {
    OMP_NUM_THREADS: cores,
    GOMAXPROCS: cores,
    ATRIUM_CPUS: String(limits.cpuMilli / 1_000),
    ATRIUM_MEMORY_MIB: String(limits.memoryMiB),
    ATRIUM_DISK_MIB: String(limits.diskMiB),
  };
}

/** A sandbox's own files in /etc. Names are resolved by the agent on 127.0.0.1:53. */
const filesFor = (uid: number): Record<string, string> => ({
  passwd: `root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:${uid}:${uid}:user:/home/user:/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
  group: `root:x:0:\ntty:x:5:\nuser:x:${uid}:\nnogroup:x:65534:\n`,
  hosts: '127.0.0.1 localhost computer\n::1 localhost computer\n',
  hostname: 'computer\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  'resolv.conf': 'nameserver 127.0.0.1\noptions timeout:5 attempts:1\n',
});

/** Writes the sandbox's /etc, readable by all, with the uid used inside. Replaces each file as a whole. */
export async function writeEtc(folder: string, owner = uid): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(filesFor(owner))) {
    const temporary = join(folder, `.${name}.${process.pid}`);
    await writeFile(temporary, text, { mode: 0o644 });
    await rename(temporary, join(folder, name));
  }
}
