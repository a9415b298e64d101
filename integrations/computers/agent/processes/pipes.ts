import { execFile } from 'node:child_process';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmdirSync, unlinkSync } from 'node:fs';

/**
 * A pipe between us and a child. Node would give the child sockets, but a program that opens `/dev/stdout` needs a real
 * pipe.
 */
export interface Pipe {
  /** Our end, which does not block. */
  ours: number;
  /** The child's end, which blocks as programs expect. We close it once the child has it. */
  childs: number;
}

const kept = 6;
const madeAtOnce = 12;
const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

/** Keeps a stock of unnamed FIFOs. Each batch takes a run of `mkfifo`, so they are made ahead. */
export class Pipes {
  readonly #free: number[] = [];
  #making: Promise<void> | undefined;
  #taken: Promise<unknown> = Promise.resolve();

  constructor() {
    void this.#fill();
  }

  /**
   * Returns pipes that we read from (`in`) or write to (`out`). Serves calls in order: otherwise, when many processes
   * start at once, the last callers would always find the new pipes taken.
   */
  take(...directions: ('in' | 'out')[]): Promise<Pipe[]> {
    const mine = this.#taken.then(() => this.#take(directions));
    this.#taken = mine.catch(() => undefined);
    return mine;
  }

  async #take(directions: ('in' | 'out')[]): Promise<Pipe[]> {
    for (let tries = 0; this.#free.length < directions.length; tries++) {
      if (tries === 3) throw new Error('No pipe can be made.');
      await this.#fill();
    }
    const pipes = directions.map((direction) => open(this.#free.pop() as number, direction));
    if (this.#free.length < kept) void this.#fill();
    return pipes;
  }

  #fill(): Promise<void> {
    this.#making ??= make(this.#free).finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }
}

export function closePipes(pipes: Pipe[]): void {
  for (const { ours, childs } of pipes) {
    closeSync(ours);
    closeSync(childs);
  }
}

function make(free: number[]): Promise<void> {
  return new Promise((resolve) => {
    let folder: string;
    try {
      folder = mkdtempSync('/tmp/.pipes-');
    } catch {
      resolve();
      return;
    }
    execFile('/usr/bin/mkfifo', ['-m', '600', ...pathsIn(folder)], () => {
      takeFrom(folder, free);
      resolve();
    });
  });
}

/** Opens the FIFOs in a folder, then removes their names and the folder. */
function takeFrom(folder: string, free: number[]): void {
  for (const path of pathsIn(folder)) {
    try {
      // O_RDWR does not wait for the other side.
      const fd = openSync(path, O_RDWR | O_NONBLOCK);
      if (fstatSync(fd).isFIFO()) free.push(fd);
      else closeSync(fd);
      unlinkSync(path);
    } catch {
      // This pipe is missing. `take` makes more if too few are left.
    }
  }
  try {
    rmdirSync(folder);
  } catch {
    // A program has put a file there, or removed the folder.
  }
}

function pathsIn(folder: string): string[] {
  return Array.from({ length: madeAtOnce }, (_, at) => `${folder}/${at}`);
}

/** Opens both ends by descriptor, not by name, so that no other process can interfere. */
function open(fd: number, direction: 'in' | 'out'): Pipe {
  const path = `/proc/self/fd/${fd}`;
  try {
    const reader = openSync(path, O_RDONLY | (direction === 'in' ? O_NONBLOCK : 0));
    const writer = openSync(path, O_WRONLY | (direction === 'out' ? O_NONBLOCK : 0));
    return direction === 'in' ? { ours: reader, childs: writer } : { ours: writer, childs: reader };
  } finally {
    closeSync(fd);
  }
}
