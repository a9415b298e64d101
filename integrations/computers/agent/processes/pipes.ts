import { execFile } from 'node:child_process';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmdirSync, unlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * One end is ours, the other the child's. Node would give children sockets, which `/dev/stdout` cannot open, but
 * programs that open it need real pipes.
 */
export interface Pipe {
  /** Our end, which does not block. */
  ours: number;
  /** The child's end, which blocks as programs expect. We close it once the child has it. */
  childs: number;
}

const kept = 6;
const madeAtOnce = 12;
export const firstFolder = '/tmp/.pipes-first';
/** Where they are not made by then, `make` makes some. */
const firstWaitMs = 1_000;
const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

/** Makes the first of them while Node starts, which `exec` does. Nothing of a tenant runs yet. */
export const makeFirstPipes = `((mkdir -m 700 ${firstFolder} && mkfifo -m 600 ${pathsIn(firstFolder).join(' ')}) 2>/dev/null &); exec "$0" "$@"`;

/** Pipes are FIFOs without a name. Each batch takes a run of `mkfifo`, so they are made ahead. */
export class Pipes {
  readonly #free: number[] = [];
  #making: Promise<void> | undefined;
  #taken: Promise<unknown> = Promise.resolve();

  /** `first`: the folder of those that somebody else makes now, or has made. */
  constructor(first?: string) {
    if (first === undefined) void this.#fill();
    else if (!takeFrom(first, this.#free)) void this.#fill(() => takeSoon(first, this.#free));
  }

  /**
   * Gives pipes that we read from (`in`) or write to (`out`). Calls are served one after the other: otherwise, when
   * many processes start at once, the last ones would always find the new pipes taken.
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

  #fill(fill = () => make(this.#free)): Promise<void> {
    this.#making ??= fill().finally(() => {
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

/** On a busy machine Node can be there before all of them are: nothing of them may be left for a tenant to see. */
async function takeSoon(folder: string, free: number[]): Promise<void> {
  const giveUpAt = Date.now() + firstWaitMs;
  while (Date.now() < giveUpAt) {
    await delay(5);
    if (takeFrom(folder, free)) return;
  }
}

/** Opens the FIFOs of a folder, and removes their names and it. Returns whether the folder is gone. */
function takeFrom(folder: string, free: number[]): boolean {
  for (const path of pathsIn(folder)) {
    try {
      // O_RDWR does not wait for the other side.
      const fd = openSync(path, O_RDWR | O_NONBLOCK);
      if (fstatSync(fd).isFIFO()) free.push(fd);
      else closeSync(fd);
      unlinkSync(path);
    } catch {
      // This pipe is missing; `take` makes more where too few are left.
    }
  }
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false; // The folder does not exist yet, or is being filled.
  }
}

function pathsIn(folder: string): string[] {
  return Array.from({ length: madeAtOnce }, (_, at) => `${folder}/${at}`);
}

/** Opens the two ends by the descriptor, not by a name, so that no other process can come between. */
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
