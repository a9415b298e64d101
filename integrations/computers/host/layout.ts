import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Where a host keeps what it knows. What is its own begins with a dot, which no computer’s id does. Of a computer only
 * `home`, `processes` and `run` belong to the computer’s user.
 */
export function hostLayout(dir: string) {
  return {
    dir,
    identity: join(dir, '.host.json'),
    lock: join(dir, '.lock'),
    /** Mounted here where there is an image; else an ordinary folder. */
    homes: join(dir, '.homes'),
    image: join(dir, '.homes.btrfs'),
    runtime: join(dir, '.runtime'),
    logs: join(dir, '.logs'),
    /** Sockets, and what else lives no longer than a run. */
    runs: dir.length <= longestForSockets ? join(dir, '.run') : shortRuns(dir),
  };
}

/**
 * A socket’s path may have 107 bytes (of macOS 103); the longest here is `/.run/.cmp_<26 letters>.egress`, with some to
 * spare.
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
    filesSocket: join(run, 'files.sock'),
    /** Where the egress proxy of this computer listens. */
    egressSocket: join(run, 'egress.sock'),
    /** Where it is made, since `run` belongs to the computer’s user. */
    egressDraft: join(layout.runs, `.${computerId}.egress`),
    end: join(run, 'end.json'),
    filesEnd: join(run, 'files-end.json'),
    workSocket: join(run, 'work.sock'),
    workEnd: join(run, 'work-end.json'),
    view: join(run, 'view'),
  };
}

type ComputerLayout = ReturnType<typeof computerLayout>;

/** An id becomes a folder’s name, so nothing else may pass for one. */
export function isComputerId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text);
}
