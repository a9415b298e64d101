import type { Screen } from '../hostClient.ts';
import type { LiveProcess } from '../processes/liveProcess.ts';
import { readLog } from '../processes/logReader.ts';
import { RecordDecoder, type Size } from '../processes/records.ts';
import { writeCheckpoint } from './screenCheckpoint.ts';
import { TerminalScreen } from './terminalScreen.ts';

/** Of what is further behind, only the end is drawn: so much has gone through the screen since. */
export const maxLagBytes = 2 * 1_048_576;
export const drawnAtLeastBytes = 1_048_576;
const checkpointBytes = 1_048_576;
/** While nobody asks for it, a screen is drawn no faster than this. */
const bytesPerMs = 1_310;

/** The screen of a terminal whose process runs, drawn as its output comes. */
export class FollowedScreen {
  readonly #process: LiveProcess;
  readonly #screen: TerminalScreen;
  readonly #isTooMuch: () => boolean;
  #drawn: { readTo: number; screen: Screen } | undefined;
  #checkpointAt = 0;
  #asked = Promise.withResolvers<void>();
  #advanced = Promise.withResolvers<void>();
  #askers = 0;
  /** While output is being drawn, what is on the screen belongs to no position. */
  #isDrawing = false;
  #isOver = false;
  /** Whether to read on elsewhere. */
  #hasSkipped = false;

  /** `isTooMuch` says whether all screens together take too much memory. */
  constructor(process: LiveProcess, size: Size, isTooMuch: () => boolean) {
    this.#process = process;
    this.#screen = new TerminalScreen(size);
    this.#isTooMuch = isTooMuch;
  }

  get cells(): number {
    return this.#screen.cells;
  }

  /** Draws up to the end of the process, which it settles with. */
  async run(): Promise<void> {
    try {
      while (!this.#isOver && !this.#isTooMuch()) await this.#read();
      await this.#checkpoint();
    } finally {
      this.#isOver = true;
      this.#advanced.resolve();
      this.#screen.dispose();
    }
  }

  /** As it is when this is asked; undefined where it is no longer drawn. However many ask, it is drawn once. */
  async draw(signal: AbortSignal): Promise<Screen | undefined> {
    const target = this.#process.info().outputBytes;
    this.#askers++;
    this.#asked.resolve();
    try {
      const isBehind = () => this.#isDrawing || this.#screen.readTo < target;
      while (!this.#isOver && isBehind() && !signal.aborted) await this.#advanced.promise;
      signal.throwIfAborted();
      return this.#isOver ? undefined : this.#now();
    } finally {
      this.#askers--;
    }
  }

  #now(): Screen {
    const { readTo } = this.#screen;
    if (this.#drawn?.readTo !== readTo) this.#drawn = { readTo, screen: this.#screen.screen() };
    return this.#drawn.screen;
  }

  /** Reads on until it is over, or too far behind. */
  async #read(): Promise<void> {
    const decoder = new RecordDecoder();
    for await (const bytes of readLog(this.#process.log, { after: this.#screen.readTo, follow: true })) {
      this.#isDrawing = true;
      for (const record of decoder.push(bytes)) {
        if (record.kind === 'exit') this.#isOver = true;
        if (record.kind === 'resize') this.#drawn = undefined;
        await this.#screen.take(record);
      }
      await this.#skipWhereFar();
      this.#isDrawing = false;
      this.#tell();
      if (this.#isOver || this.#isTooMuch() || this.#hasSkipped) return;
      if (this.#screen.readTo - this.#checkpointAt >= checkpointBytes) await this.#checkpoint();
      if (this.#askers === 0) await this.#pause(bytes.length / bytesPerMs);
    }
  }

  async #skipWhereFar(): Promise<void> {
    const { outputBytes, pty } = this.#process.info();
    this.#hasSkipped = outputBytes - this.#screen.readTo > maxLagBytes;
    if (this.#hasSkipped) await this.#screen.skipTo(outputBytes - drawnAtLeastBytes, pty ?? undefined);
  }

  async #checkpoint(): Promise<void> {
    this.#checkpointAt = this.#screen.readTo;
    await writeCheckpoint(this.#process.folder, this.#screen.screen());
  }

  #tell(): void {
    const { resolve } = this.#advanced;
    this.#advanced = Promise.withResolvers();
    resolve();
  }

  /** Unless somebody asks. */
  async #pause(ms: number): Promise<void> {
    this.#asked = Promise.withResolvers();
    const timer = setTimeout(this.#asked.resolve, ms);
    await this.#asked.promise;
    clearTimeout(timer);
  }
}
