import { SerializeAddon } from '@xterm/addon-serialize';
import xterm from '@xterm/headless';
import type { Screen } from '../../hostClient.ts';
import { noteOf, positionAfter, type Size } from '../../processes/records.ts';
import type { OutputRecord } from '../../types.ts';
import { SequenceFilter } from './sequences.ts';

const maxScrollback = 1_000;
/** A wide terminal keeps fewer lines. */
const maxCells = 100_000;
/** Combining characters pile up in a cell. A longer cell is unreadable. */
const maxCellLength = 256;
/** Titles and links. They are not drawn, and a program could make them as long as it likes. */
const ignoredCommands = [0, 1, 2, 8];
const cancel = Buffer.from('\x18');

/** A terminal that is drawn in memory. Its memory does not grow with its output. */
export class TerminalScreen {
  readonly #terminal: InstanceType<typeof xterm.Terminal>;
  readonly #serializer = new SerializeAddon();
  /** All output passes this filter. A sequence that it holds is drawn once it is complete. */
  readonly #filter = new SequenceFilter(() => Math.max(this.#terminal.cols, this.#terminal.rows));
  #position = 0;
  #isWithinLine = false;

  constructor(size: Size) {
    const options = { ...size, scrollback: scrollbackOf(size), allowProposedApi: true, logLevel: 'off' as const };
    this.#terminal = new xterm.Terminal(options);
    this.#terminal.loadAddon(this.#serializer);
    for (const command of ignoredCommands) this.#terminal.parser.registerOscHandler(command, () => true);
  }

  static async restore({ position, data, cols, rows }: Screen): Promise<TerminalScreen> {
    const screen = new TerminalScreen({ cols, rows });
    await screen.#write(Buffer.from(data));
    screen.#position = position;
    return screen;
  }

  /** The position up to which the screen has received output. The drawing may end a few bytes earlier. */
  get readTo(): number {
    return this.#position + this.#filter.heldBytes;
  }

  get cells(): number {
    const { cols, rows, options } = this.#terminal;
    return cols * (2 * rows + (options.scrollback ?? 0));
  }

  async take(record: OutputRecord): Promise<void> {
    if (record.kind === 'pty') await this.#draw(record);
    else if (record.kind === 'resize') this.#resize(noteOf<Size>(record));
    else if (record.kind === 'gap') await this.skipTo(positionAfter(record));
  }

  /** Continues at a later position. The drawing stays, with its modes and colours, until output draws over it. */
  async skipTo(position: number, size?: Size): Promise<void> {
    this.#filter.reset();
    await this.#write(cancel);
    if (size !== undefined) this.#resize(size);
    this.#position = position;
    this.#isWithinLine = true;
  }

  screen(): Screen {
    const { cols, rows, options } = this.#terminal;
    const data = this.#serializer.serialize({ scrollback: options.scrollback ?? 0 });
    return { position: this.#position, cols, rows, data };
  }

  dispose(): void {
    this.#terminal.dispose();
  }

  async #draw({ payload, position }: OutputRecord): Promise<void> {
    const skipped = this.#isWithinLine ? Math.max(0, payload.findIndex(isBeginning)) : 0;
    this.#isWithinLine = false;
    await this.#write(Buffer.from(payload.buffer, payload.byteOffset + skipped, payload.length - skipped));
    this.#position = position + payload.length - this.#filter.heldBytes;
    if (this.#lengthAtCursor() > maxCellLength) this.#terminal.reset();
  }

  #write(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => this.#terminal.write(this.#filter.push(bytes), resolve));
  }

  #resize(size: Size): void {
    this.#terminal.options.scrollback = scrollbackOf(size);
    this.#terminal.resize(size.cols, size.rows);
  }

  #lengthAtCursor(): number {
    const { baseY, cursorX, cursorY, getLine } = this.#terminal.buffer.active;
    const line = getLine.call(this.#terminal.buffer.active, baseY + cursorY);
    return line?.getCell(Math.max(0, cursorX - 1))?.getChars().length ?? 0;
  }
}

function scrollbackOf({ cols, rows }: Size): number {
  return Math.max(0, Math.min(maxScrollback, Math.floor(maxCells / cols) - rows));
}

/** Whether drawing may begin here: at an escape sequence, or after a line. */
function isBeginning(byte: number): boolean {
  return byte === 0x1b || byte === 0x0a;
}
