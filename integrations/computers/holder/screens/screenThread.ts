import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Screen } from '../../hostClient.ts';
import type { Size } from '../../processes/records.ts';
import type { OutputRecord } from '../../types.ts';

/** The time limit for one piece of output, which takes milliseconds. */
const usualLimitMs = 10_000;
/** The limit is counted in ticks. No ticks pass while the holder is paused, so a paused thread does not look slow. */
const ticks = 10;
const maxHeapMiB = 256;

/** The screen is no longer drawn: its thread was ended or has failed. */
export class ScreenLost extends Error {
  override readonly name = 'ScreenLost';
  /** Whether this screen took too long or too much memory. Other screens can be drawn again from their checkpoints. */
  readonly isAtFault: boolean;

  constructor(isAtFault: boolean) {
    super('The screen could not be drawn.');
    this.isAtFault = isAtFault;
  }
}

/** The screen program: one file beside the installed holder, or the source file in this folder. */
export function screenProgram(holderProgram: string): string {
  return `${dirname(holderProgram)}/${holderProgram.endsWith('.cjs') ? screenProgramName : 'screens/screenMain.ts'}`;
}
export const screenProgramName = 'screens.cjs';

/**
 * Draws the terminals of a computer in a thread, which lives while there are screens. A tenant's output may cost more
 * time or memory than any check foresees, so the thread is ended if one request takes longer than `limitMs` or too much
 * memory. The holder goes on.
 */
export class ScreenThread {
  readonly #program: string;
  readonly #tickMs: number;
  readonly #screens = new Set<DrawnScreen>();
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #nextId = 1;

  constructor(program: string, { limitMs = usualLimitMs }: { limitMs?: number } = {}) {
    this.#program = program;
    this.#tickMs = limitMs / ticks;
  }

  /** Opens an empty screen, or one from a checkpoint. */
  async open(from: Size | Screen): Promise<DrawnScreen> {
    const screenId = this.#nextId++;
    const screen: DrawnScreen = new DrawnScreen((request) => this.#ask(screen, { screenId, ...request }));
    this.#screens.add(screen);
    try {
      await screen.open(from);
      return screen;
    } catch (error) {
      this.#forget(screen);
      throw error;
    }
  }

  /** Serves one request at a time, so that a slow answer shows which screen is too slow. */
  #ask(screen: DrawnScreen, request: ScreenRequest): Promise<ScreenState> {
    const answer = this.#last.then(() => this.#askNow(screen, request));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #askNow(screen: DrawnScreen, request: ScreenRequest): Promise<ScreenState> {
    if (!this.#screens.has(screen)) throw new ScreenLost(false);
    this.#worker ??= this.#start();
    const answer = await askOf(this.#worker, request, this.#tickMs);
    if (answer === undefined || 'failed' in answer) {
      const worker = this.#worker;
      this.#worker = undefined;
      this.#screens.clear();
      await worker?.terminate();
      throw new ScreenLost(true);
    }
    if (request.do === 'dispose') this.#forget(screen);
    return answer;
  }

  #start(): Worker {
    const worker = new Worker(this.#program, {
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMiB },
    });
    worker.on('error', () => undefined); // the worker exits after an error
    worker.unref();
    return worker;
  }

  #forget(screen: DrawnScreen): void {
    this.#screens.delete(screen);
    if (this.#screens.size > 0) return;
    void this.#worker?.terminate();
    this.#worker = undefined;
  }
}

type Without<T> = T extends unknown ? Omit<T, 'screenId'> : never;

/** One screen of the thread. Every method throws {@link ScreenLost}. */
export class DrawnScreen {
  readonly #ask: (request: Without<ScreenRequest>) => Promise<ScreenState>;
  #state: ScreenState = { readTo: 0, cells: 0 };

  constructor(ask: (request: Without<ScreenRequest>) => Promise<ScreenState>) {
    this.#ask = ask;
  }

  /** The position up to which the screen has received output. The drawing may end a few bytes earlier. */
  get readTo(): number {
    return this.#state.readTo;
  }

  get cells(): number {
    return this.#state.cells;
  }

  async open(from: Size | Screen): Promise<void> {
    await this.#do({ do: 'open', from });
  }

  async take(records: OutputRecord[]): Promise<void> {
    await this.#do({ do: 'take', records });
  }

  /** Continues at a later position. The drawing stays, with its modes and colours, until output draws over it. */
  async skipTo(position: number, size?: Size): Promise<void> {
    await this.#do({ do: 'skipTo', position, size });
  }

  async show(): Promise<Screen> {
    return (await this.#do({ do: 'show' })) as Screen;
  }

  async dispose(): Promise<void> {
    await this.#do({ do: 'dispose' }).catch(() => undefined);
  }

  async #do(request: Without<ScreenRequest>): Promise<Screen | undefined> {
    this.#state = await this.#ask(request);
    return this.#state.screen;
  }
}

/** Undefined if the thread has ended or does not answer in time. */
function askOf(worker: Worker, request: ScreenRequest, tickMs: number): Promise<ScreenAnswer | undefined> {
  return new Promise((resolve) => {
    let left = ticks;
    const settle = (answer?: ScreenAnswer) => {
      clearInterval(timer);
      worker.off('message', settle);
      worker.off('exit', ended);
      resolve(answer);
    };
    const ended = () => settle();
    const timer = setInterval(() => --left <= 0 && settle(), tickMs);
    worker.once('message', settle);
    worker.once('exit', ended);
    worker.postMessage(request);
  });
}

/** A holder's request to the thread that draws its screens. One is answered at a time. */
export type ScreenRequest = { screenId: number } & (
  | { do: 'open'; from: Size | Screen }
  | { do: 'take'; records: OutputRecord[] }
  | { do: 'skipTo'; position: number; size: Size | undefined }
  | { do: 'show' }
  | { do: 'dispose' }
);

interface ScreenState {
  readTo: number;
  cells: number;
  /** Only in the answer to `show`. */
  screen?: Screen;
}

export type ScreenAnswer = ScreenState | { failed: string };
