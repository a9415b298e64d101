import type { LogTarget } from './logTargets.ts';

/** Limit of lines that wait for a full disk or a stopped reader. */
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
 * Takes log lines, and never makes the writer wait. While the target takes nothing (a full disk, a pipe whose reader
 * has stopped, a stopped terminal), lines wait in memory. Lines that do not fit are dropped, and a line in their place
 * says how many they were.
 */
export class LogSink {
  readonly #target: LogTarget;
  readonly #lossLine: (lostLines: number) => string;
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** The bytes that are being written. A target may take only a part. */
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
    // After a loss, lines are dropped until half of the room is free: one gap instead of hundreds.
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

  /** Writes what is left at the end of the process: one attempt, without waiting. */
  writeRest(): void {
    // The target has the bytes that are being written, even after this process ends.
    if (this.#isWriting) this.#batch = Buffer.alloc(0);
    try {
      for (let written = 1; written > 0 && this.#fill(); this.#batch = this.#batch.subarray(written)) {
        written = this.#target.writeNow(this.#batch);
      }
    } catch {
      // The process ends without its last lines.
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
        // Unreferenced, so that a log keeps no process alive.
        await new Promise((resolve) => setTimeout(resolve, retryMs).unref());
      }
    }
    this.#isRunning = false;
  }

  /** Takes as many lines as are written at once. False when there is nothing to write. */
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
