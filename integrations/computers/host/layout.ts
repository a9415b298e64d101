import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The paths of a host. Its own names begin with a dot, which no computer's id does. Of a computer's paths only `home`,
 * `processes` and `run` belong to the computer's user.
 */
export function hostLayout(dir: string) {
  return {
    dir,
    identity: join(dir, '.host.json'),
    lock: join(dir, '.lock'),
    /** The image is mounted here; without one this is an ordinary folder. */
    homes: join(dir, '.homes'),
    image: join(dir, '.homes.btrfs'),
    /** The snapshots of homes that were saved. No computer's user may enter it. */
    saves: join(dir, '.homes', '.saves'),
    runtime: join(dir, '.runtime'),
    logs: join(dir, '.logs'),
    /** Sockets and other files of a run. */
    runs: dir.length <= longestForSockets ? join(dir, '.run') : shortRuns(dir),
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
    home: join(layout.homes, computerId),
    record: join(dir, 'record.json'),
    processes: join(dir, 'processes'),
    run,
    socket: join(run, 'holder.sock'),
    /** The socket of this computer's egress proxy. */
    egressSocket: join(run, 'egress.sock'),
    /** The egress socket is made here and then moved, since `run` belongs to the computer's user. */
    egressDraft: join(layout.runs, `.${computerId}.egress`),
    end: join(run, 'end.json'),
    view: join(run, 'view'),
  };
}

/** An id becomes a folder's name, so it is checked. */
export function isComputerId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text);
}
