import type { LogTarget } from './logTargets.ts';

/** What waits for a disk without room, or for a reader that has stopped. */
const maxWaitingBytes = 4 * 1_048_576;
const batchBytes = 1_048_576;
const retryMs = 250;

const sinks = new Set<LogSink>();
let lostOfProcess = 0;

/** How many lines of its log this process has dropped. */
export function lostLogLines(): number {
  return lostOfProcess;
}

/**
 * Takes log lines, and never makes their writer wait. While the target takes nothing (a full disk, a pipe whose reader
 * has stopped, a terminal that stands still), lines wait in memory. Those that find no room there are dropped and
 * counted, and a line in their place says how many they were.
 */
export class LogSink {
  readonly #target: LogTarget;
  readonly #lossLine: (lostLines: number) => string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** What is written now: a target may take a part of it. */
  #batch: Buffer = Buffer.alloc(0);
  #lostLines = 0;
  #isRunning = false;
  #isWriting = false;

  constructor(target: LogTarget, lossLine: (lostLines: number) => string) {
    this.#target = target;
    this.#lossLine = lossLine;
    if (sinks.size === 0) process.on('exit', writeAllRests);
    sinks.add(this);
  }

  write(line: string): void {
    // Where lines were dropped, the next ones wait until half of the room is free: one gap, not hundreds.
    const room = this.#lostLines === 0 ? maxWaitingBytes : maxWaitingBytes / 2;
    if (this.#waitingBytes + line.length > room && this.#waitingBytes > 0) {
      this.#lostLines++;
      lostOfProcess++;
      return;
    }
    this.#tellLoss();
    this.#add(line);
    if (!this.#isRunning) void this.#run();
  }

  /** At the end of the process: one try, which does not wait. */
  writeRest(): void {
    // What is being written is its target's, also beyond our end.
    if (this.#isWriting) this.#batch = Buffer.alloc(0);
    try {
      for (let written = 1; written > 0 && this.#fill(); this.#batch = this.#batch.subarray(written)) {
        written = this.#target.writeNow(this.#batch);
      }
    } catch {
      // It ends without its last lines.
    }
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#fill()) {
      try {
        this.#isWriting = true;
        const written = await this.#target.write(this.#batch);
        this.#batch = this.#batch.subarray(written);
        this.#isWriting = false;
      } catch {
        this.#isWriting = false;
        // Unreferenced: a log keeps no process alive.
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
      }
    }
    this.#isRunning = false;
  }

  /** Takes as many lines as are written at once; false where there is nothing to write. */
  #fill(): boolean {
    if (this.#batch.length > 0) return true;
    if (this.#waiting.length === 0) this.#tellLoss();
    let length = 0;
    let count = 0;
    while (count < this.#waiting.length && length < batchBytes) length += this.#waiting[count++]?.length ?? 0;
    this.#batch = Buffer.from(this.#waiting.splice(0, count).join(''));
    this.#waitingBytes -= length;
    return this.#batch.length > 0;
  }

  #tellLoss(): void {
    if (this.#lostLines > 0) this.#add(this.#lossLine(this.#lostLines));
    this.#lostLines = 0;
  }

  #add(line: string): void {
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
  }
}

function writeAllRests(): void {
  for (const sink of sinks) sink.writeRest();
}
