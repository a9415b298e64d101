import type { Screen } from '../../hostClient.ts';
import type { LiveProcess } from '../../processes/liveProcess.ts';
import { readLog } from '../../processes/logReader.ts';
import type { ProcessStore } from '../../processes/processStore.ts';
import { noteOf, RecordDecoder, type Size } from '../../processes/records.ts';
import { drawnAtLeastBytes, FollowedScreen, maxLagBytes, readCheckpoint } from './followedScreen.ts';
import { ScreenLost, type ScreenThread } from './screenThread.ts';

/**
 * The limit for all followed screens together; a cell takes some twelve bytes. Screens beyond it are drawn when a
 * client asks for them.
 */
const maxCells = 8_000_000;

interface Drawing {
  screen: Promise<Screen>;
  askers: number;
  given: AbortController;
}

/**
 * The screens of terminals, as bytes that draw them again. The log itself would cut escape sequences apart, and repeat
 * programs' questions to the client's terminal. The screen of a running process is drawn as its output comes. Any other
 * is drawn from its last checkpoint or the end of its log.
 */
export class Screens {
  readonly #store: ProcessStore;
  readonly #thread: ScreenThread;
  readonly #followed = new Map<string, FollowedScreen>();
  readonly #drawings = new Map<string, Drawing>();

  constructor(store: ProcessStore, thread: ScreenThread) {
    this.#store = store;
    this.#thread = thread;
  }

  follow(process: LiveProcess, size: Size): void {
    const { processId } = process.meta.info;
    const screen = new FollowedScreen(process, size, this.#thread, () => this.#cells > maxCells);
    this.#followed.set(processId, screen);
    void screen
      .run()
      .catch(() => undefined)
      .finally(() => this.#followed.delete(processId));
  }

  /** Draws the screen of a process, whether it runs or not. Concurrent callers share one drawing. */
  async draw(processId: string, size: Size, signal: AbortSignal): Promise<Screen> {
    const followed = await this.#followed.get(processId)?.draw(signal);
    if (followed !== undefined) return followed;
    const drawing = this.#drawings.get(processId) ?? this.#begin(processId, size);
    drawing.askers++;
    const leave = () => {
      if (--drawing.askers === 0) drawing.given.abort();
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await drawing.screen;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  get #cells(): number {
    let cells = 0;
    for (const screen of this.#followed.values()) cells += screen.cells;
    return cells;
  }

  #begin(processId: string, size: Size): Drawing {
    const given = new AbortController();
    const screen = this.#drawOrBlank(processId, size, given.signal).finally(() => {
      if (this.#drawings.get(processId) === drawing) this.#drawings.delete(processId);
    });
    const drawing: Drawing = { screen, askers: 0, given };
    this.#drawings.set(processId, drawing);
    // All callers may have left by then.
    screen.catch(() => undefined);
    given.signal.addEventListener('abort', () => this.#drawings.delete(processId));
    return drawing;
  }

  /** A screen that cannot be drawn is empty, at the end of its log. */
  async #drawOrBlank(processId: string, size: Size, signal: AbortSignal): Promise<Screen> {
    for (;;) {
      try {
        return await this.#drawFromDisk(processId, size, signal);
      } catch (error) {
        if (!(error instanceof ScreenLost)) throw error;
        const { outputBytes } = await this.#store.info(processId);
        if (error.isAtFault) return { position: outputBytes, ...size, data: '' };
      }
    }
  }

  async #drawFromDisk(processId: string, size: Size, signal: AbortSignal): Promise<Screen> {
    const { outputBytes } = await this.#store.info(processId);
    const log = await this.#store.log(processId);
    const checkpoint = await readCheckpoint(this.#store.folderOf(processId));
    const isOfLog = checkpoint !== undefined && checkpoint.position <= outputBytes;
    const screen = await this.#thread.open(isOfLog ? checkpoint : ((await this.#firstSize(processId)) ?? size));
    try {
      const isFar = outputBytes - screen.readTo > maxLagBytes;
      if (isFar) await screen.skipTo(outputBytes - drawnAtLeastBytes, size);
      const decoder = new RecordDecoder();
      for await (const bytes of readLog(log, { after: screen.readTo, follow: false, signal })) {
        signal.throwIfAborted();
        await screen.take([...decoder.push(bytes)]);
      }
      return await screen.show();
    } finally {
      await screen.dispose();
    }
  }

  /** The initial size, from the log's first record. */
  async #firstSize(processId: string): Promise<Size | undefined> {
    const decoder = new RecordDecoder();
    for await (const bytes of readLog(await this.#store.log(processId), { after: 0, follow: false })) {
      for (const record of decoder.push(bytes)) return record.kind === 'resize' ? noteOf<Size>(record) : undefined;
    }
    return undefined;
  }
}
