import { rename, writeFile } from 'node:fs/promises';
import { Changes } from '../../../../base/async.ts';
import type { Screen } from '../../hostClient.ts';
import type { LiveProcess } from '../../processes/liveProcess.ts';
import { readLog } from '../../processes/logReader.ts';
import { readPlainFile } from '../../processes/plainFiles.ts';
import { RecordDecoder, type Size } from '../../processes/records.ts';
import { type DrawnScreen, ScreenLost, type ScreenThread } from './screenThread.ts';

/** A screen that is further behind its log than this skips to the end of the log. */
export const maxLagBytes = 2 * 1_048_576;
export const drawnAtLeastBytes = 1_048_576;
const checkpointBytes = 1_048_576;
/** The drawing speed of a screen that no client is asking for. */
const bytesPerMs = 1_310;

/** The screen of a running terminal process, drawn as its output comes. */
export class FollowedScreen {
  readonly #process: LiveProcess;
  readonly #thread: ScreenThread;
  readonly #size: Size;
  #screen: DrawnScreen | undefined;
  readonly #isTooMuch: () => boolean;
  #drawn: { readTo: number; screen: Promise<Screen> } | undefined;
  #checkpointAt = 0;
  #asked = Promise.withResolvers<void>();
  readonly #advances = new Changes();
  #askers = 0;
  /** While output is being drawn, the screen matches no position of the log. */
  #isDrawing = false;
  #isOver = false;
  /** Set when the screen has skipped, so that reading restarts at the new position. */
  #hasSkipped = false;

  /** `isTooMuch` says whether all screens together use too much memory. */
  constructor(process: LiveProcess, size: Size, thread: ScreenThread, isTooMuch: () => boolean) {
    this.#process = process;
    this.#size = size;
    this.#thread = thread;
    this.#isTooMuch = isTooMuch;
  }

  get cells(): number {
    return this.#screen?.cells ?? 0;
  }

  /** Draws until the process ends. */
  async run(): Promise<void> {
    try {
      let screen = await this.#thread.open(this.#size);
      this.#screen = screen;
      this.#advances.tell();
      while (!this.#isOver && !this.#isTooMuch()) {
        await this.#read(screen).catch(async (error: unknown) => {
          screen = await this.#after(error);
        });
      }
      await this.#checkpoint(screen);
    } finally {
      this.#isOver = true;
      this.#advances.tell();
      await this.#screen?.dispose();
    }
  }

  /** Opens a new screen after one was lost. The checkpoint is drawn again only if this screen was not at fault. */
  async #after(error: unknown): Promise<DrawnScreen> {
    if (!(error instanceof ScreenLost)) throw error;
    const { outputBytes, pty } = this.#process.info();
    const kept = error.isAtFault ? undefined : await readCheckpoint(this.#process.folder);
    const screen = await this.#thread.open(kept ?? pty ?? this.#size);
    if (kept === undefined) await screen.skipTo(outputBytes);
    this.#drawn = undefined;
    this.#checkpointAt = screen.readTo;
    this.#screen = screen;
    this.#isDrawing = false;
    this.#advances.tell();
    return screen;
  }

  /**
   * The screen as it is at the time of the call. Undefined if it is no longer drawn. Concurrent callers share one
   * drawing.
   */
  async draw(signal: AbortSignal): Promise<Screen | undefined> {
    const target = this.#process.info().outputBytes;
    this.#askers++;
    this.#asked.resolve();
    try {
      const isBehind = () => this.#isDrawing || (this.#screen?.readTo ?? -1) < target;
      while (!this.#isOver && isBehind() && !signal.aborted) await this.#advances.next;
      signal.throwIfAborted();
      return this.#isOver ? undefined : this.#now();
    } finally {
      this.#askers--;
    }
  }

  async #now(): Promise<Screen | undefined> {
    const screen = this.#screen;
    if (screen === undefined) return undefined;
    const { readTo } = screen;
    if (this.#drawn?.readTo !== readTo) this.#drawn = { readTo, screen: screen.show() };
    return this.#drawn.screen.catch(() => undefined);
  }

  /** Reads the log until the process ends or the screen is too far behind. */
  async #read(screen: DrawnScreen): Promise<void> {
    const decoder = new RecordDecoder();
    for await (const bytes of readLog(this.#process.log, { after: screen.readTo, follow: true, mayMiss: true })) {
      this.#isDrawing = true;
      const records = [...decoder.push(bytes)];
      if (records.some(({ kind }) => kind === 'exit')) this.#isOver = true;
      if (records.some(({ kind }) => kind === 'resize')) this.#drawn = undefined;
      await screen.take(records);
      await this.#skipWhereFar(screen);
      this.#isDrawing = false;
      this.#advances.tell();
      if (this.#isOver || this.#isTooMuch() || this.#hasSkipped) return;
      if (screen.readTo - this.#checkpointAt >= checkpointBytes) await this.#checkpoint(screen);
      if (this.#askers === 0) await this.#pause(bytes.length / bytesPerMs);
    }
  }

  async #skipWhereFar(screen: DrawnScreen): Promise<void> {
    const { outputBytes, pty } = this.#process.info();
    this.#hasSkipped = outputBytes - screen.readTo > maxLagBytes;
    if (this.#hasSkipped) await screen.skipTo(outputBytes - drawnAtLeastBytes, pty ?? undefined);
  }

  async #checkpoint(screen: DrawnScreen): Promise<void> {
    this.#checkpointAt = screen.readTo;
    await writeCheckpoint(this.#process.folder, await screen.show());
  }

  /** Waits until the time is over or a client asks for the screen. */
  async #pause(ms: number): Promise<void> {
    this.#asked = Promise.withResolvers();
    const timer = setTimeout(this.#asked.resolve, ms);
    await this.#asked.promise;
    clearTimeout(timer);
  }
}

const maxBytes = 8 * 1_048_576;

/** Saves a screen beside its log, so that later drawing continues there instead of at the beginning. */
async function writeCheckpoint(folder: string, screen: Screen): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(screen));
  if (bytes.length > maxBytes) return;
  try {
    await writeFile(`${folder}/screen.json.new`, bytes, { mode: 0o600 });
    await rename(`${folder}/screen.json.new`, `${folder}/screen.json`);
  } catch {
    // The disk is full, or the process was forgotten. The screen is then drawn from the log alone.
  }
}

export async function readCheckpoint(folder: string): Promise<Screen | undefined> {
  try {
    const { position, cols, rows, data } = JSON.parse(await readPlainFile(folder, 'screen.json', maxBytes)) as Screen;
    const isSize = [cols, rows].every((side) => Number.isInteger(side) && side > 0 && side <= 1_000);
    return Number.isSafeInteger(position) && isSize && typeof data === 'string'
      ? { position, cols, rows, data }
      : undefined;
  } catch {
    return undefined;
  }
}
