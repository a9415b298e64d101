import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BaseName } from '../types.ts';

/**
 * The paths of a host. Its own names begin with a dot, which no computer's id does. Of a computer's paths only `home`,
 * `processes` and `run` belong to the computer's user.
 */
export function hostLayout(dir: string) {
  const runs = dir.length <= longestForSockets ? join(dir, '.run') : shortRuns(dir);
  return {
    dir,
    identity: join(dir, '.host.json'),
    lock: join(dir, '.lock'),
    /** The image is mounted here; without one this is an ordinary folder. */
    homes: join(dir, '.homes'),
    image: join(dir, '.homes.btrfs'),
    /** The root file systems with which computers begin. No computer's user may enter it. */
    bases: join(dir, '.homes', '.bases'),
    /** Which computer uses which saves. No computer's user may enter it. */
    saves: join(dir, '.homes', '.saves'),
    /** The snapshots of homes that were saved, one for each save. The same holds for it. */
    snapshots: join(dir, '.homes', '.snapshots'),
    /** What works on images of registries has its files here. */
    images: join(dir, '.images'),
    runtime: join(dir, '.runtime'),
    logs: join(dir, '.logs'),
    /** Sockets and other files of a run. */
    runs,
    /** Where the drives of spaces are mounted, one for each computer that runs. */
    drives: join(dir, '.drives'),
    driveBackend: join(runs, '.drive-backend'),
    driveControl: join(runs, '.drive-control'),
    driveCache: join(dir, '.drive', 'cache'),
    /** What programs have written and what is not in a drive yet. */
    driveStage: join(dir, '.drive', 'stage'),
    driveLog: join(dir, '.logs', 'drives.log'),
  };
}

/**
 * A socket's path may have 107 bytes (103 on macOS). The longest one here ends in `/.run/.cmp_<26 letters>.egress`,
 * with some bytes to spare.
 */
const longestForSockets = (process.platform === 'linux' ? 107 : 103) - 54;

function shortRuns(dir: string): string {
  const name = createHash('sha256').update(dir).digest('hex').slice(0, 12);
  return process.getuid?.() === 0
    ? `/run/atrium-${name}`
    : join(process.platform === 'linux' ? tmpdir() : '/tmp', `atrium-${process.getuid?.()}-${name}`);
}

export type HostLayout = ReturnType<typeof hostLayout>;

export function computerLayout(layout: HostLayout, computerId: string) {
  const dir = join(layout.dir, computerId);
  const run = join(layout.runs, computerId);
  return {
    dir,
    /** Its home, or with a base the volume of its root file system. */
    home: join(layout.homes, computerId),
    /** Where its sandbox mounts its root file system. */
    root: join(dir, 'root'),
    record: join(dir, 'record.json'),
    processes: join(dir, 'processes'),
    run,
    socket: join(run, 'holder.sock'),
    /** The socket of this computer's egress proxy. */
    egressSocket: join(run, 'egress.sock'),
    /** The egress socket is made here and then moved, since `run` belongs to the computer's user. */
    egressDraft: join(layout.runs, `.${computerId}.egress`),
    /** Where its drive is mounted. */
    drive: join(layout.drives, computerId),
    /** Where its holder waits until all is in the drive. Its user owns the socket, and can replace it by none. */
    driveSocket: join(layout.runs, `.${computerId}.drive`),
    end: join(run, 'end.json'),
    view: join(run, 'view'),
  };
}

/** The volume of a base. It may not be made yet. */
export const baseVolume = ({ bases }: HostLayout, base: BaseName) => join(bases, base);

/** The same for an image, which is named by its digest. */
export const imageVolume = ({ bases }: HostLayout, image: string) =>
  join(bases, `${imagePrefix}${image.slice(image.lastIndexOf(':') + 1)}`);

export const imagePrefix = 'image-';

/** The root file system in a volume. The volume's own folder is closed to all users of the host. */
export const rootIn = (volume: string) => join(volume, 'root');

/** An id becomes a folder's name, so it is checked. */
export function isComputerId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text);
}
