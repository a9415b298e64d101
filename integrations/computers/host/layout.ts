import { join } from 'node:path';

/**
 * Where a host keeps what it knows. What is its own begins with a dot, which no computer’s id does. Of a computer only
 * `home`, `processes` and `run` belong to the computer’s user. Names are short, for the path of a socket may only have
 * 107 bytes.
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
  };
}

export type HostLayout = ReturnType<typeof hostLayout>;

export function computerLayout(layout: HostLayout, computerId: string) {
  const dir = join(layout.dir, computerId);
  return {
    dir,
    home: join(layout.homes, computerId),
    record: join(dir, 'record.json'),
    processes: join(dir, 'processes'),
    run: join(dir, 'run'),
    socket: join(dir, 'run', 'holder.sock'),
    filesSocket: join(dir, 'run', 'files.sock'),
    /** Where the egress proxy of this computer listens. */
    egressSocket: join(dir, 'run', 'egress.sock'),
    end: join(dir, 'run', 'end.json'),
    filesEnd: join(dir, 'run', 'files-end.json'),
  };
}

export type ComputerLayout = ReturnType<typeof computerLayout>;

/** An id becomes a folder’s name, so nothing else may pass for one. */
export function isComputerId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text);
}
