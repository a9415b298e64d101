import type { ComputerLimits } from '../../types.ts';

/** Where a computer sees its home. */
export const home = '/home/user';
/** The one user whom it knows, whoever that is outside. */
export const uid = 1000;

/** Of every process, beside the computer’s own variables. */
export const environment: Record<string, string> = {
  PATH: '/home/user/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: home,
  USER: 'user',
  LOGNAME: 'user',
  SHELL: '/bin/bash',
  LANG: 'C.UTF-8',
};

const fromEtc = ['ssl', 'alternatives', 'fonts', 'ld.so.cache', 'X11', 'xdg', 'chromium.d'];
const ownEtc = ['passwd', 'group', 'hosts', 'hostname', 'nsswitch.conf', 'resolv.conf'];

/** For bwrap: all that a sandbox sees of its host’s system. */
export function hostFiles(etcDir: string): string[] {
  return [
    ...['--ro-bind', '/usr', '/usr'],
    ...['bin', 'lib', 'lib64', 'sbin'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...fromEtc.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...ownEtc.flatMap((name) => ['--ro-bind', `${etcDir}/${name}`, `/etc/${name}`]),
  ];
}

/** Temporary files count as memory. Together they leave some, with which they can be cleared up. */
export function temporaryFolders({ memoryMiB }: Pick<ComputerLimits, 'memoryMiB'>) {
  return [
    { path: '/dev/shm', mode: '1777', share: 1 / 4 },
    { path: '/tmp', mode: '1777', share: 1 / 2 },
    { path: '/run', mode: '0755', share: 1 / 16 },
  ].map(({ share, ...folder }) => ({ ...folder, bytes: Math.ceil(memoryMiB * 1024 * 1024 * share) }));
}
