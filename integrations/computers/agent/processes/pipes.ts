import { execFile } from 'node:child_process';
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmdirSync, unlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Node gives children sockets, which cannot be opened by `/dev/stdout`: programs that do so need real pipes. */
export interface Pipe {
  /** Does not block, and belongs to us. */
  ours: number;
  /** Blocks, as programs expect, and is closed once the child has it. */
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

/** Pipes are FIFOs without a name. They are made ahead, a few at a time, for it takes a program to make one. */
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
   * Pipes that we read from (`in`) or write to (`out`), one after the other: of many that start at once, the last ones
   * would find what was made for them taken again and again.
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
      // Opened so, a FIFO does not wait for the other side.
      const fd = openSync(path, O_RDWR | O_NONBLOCK);
      if (fstatSync(fd).isFIFO()) free.push(fd);
      else closeSync(fd);
      unlinkSync(path);
    } catch {
      // There is one less.
    }
  }
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false; // It is not there yet, or is being filled.
  }
}

function pathsIn(folder: string): string[] {
  return Array.from({ length: madeAtOnce }, (_, at) => `${folder}/${at}`);
}

/** Its two ends. By the descriptor, not by a name: no other process can come between. */
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
