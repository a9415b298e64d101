import type { Logger } from 'pino';
import { DomainError } from '../../../base/errors.ts';
import type { HostClient } from '../../../integrations/computers/hostClient.ts';
import { type Exit, type Gap, noteOf, type Size } from '../../../integrations/computers/processes/records.ts';
import type { OutputRecord, ProcessInfo } from '../../../integrations/computers/types.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import type { Connection } from '../../frame/connection.ts';
import { inTurn } from '../processes/inTurn.ts';
import { type ClientMessage, readMessage, type ServerMessage } from './messages.ts';

/** The process has ended, and all of its output was sent. */
const endedCode = 1000;
/** The computer went away; connect again. */
const lostCode = 4001;
/** How many messages may wait for the process. While more wait, nothing is read from the client. */
const mostWaiting = 100;

/** One client of a terminal. Each client has its own position in the output. */
export class Terminal {
  readonly #connection: Connection;
  readonly #client: HostClient;
  readonly #process: ProcessInfo;
  readonly #writer: string;
  readonly #userId: string;
  readonly #log: Pick<Logger, 'warn'>;
  #waiting: ClientMessage[] = [];
  #isWriting = false;
  #isPaused = false;
  /** This client's size. It applies while this client writes. */
  #size: Size | undefined;
  #told: Size;

  constructor(options: {
    connection: Connection;
    client: HostClient;
    process: ProcessInfo;
    writer: string;
    userId: string;
    log: Pick<Logger, 'warn'>;
  }) {
    this.#connection = options.connection;
    this.#client = options.client;
    this.#process = options.process;
    this.#writer = options.writer;
    this.#userId = options.userId;
    this.#log = options.log;
    this.#told = options.process.pty ?? { cols: 80, rows: 24 };
  }

  /** Shows the output from a position, or the screen and the output after it. */
  run(after: number | undefined): void {
    this.#connection.onMessage((data, isBinary) => this.#take(data, isBinary));
    this.#show(after).catch((error: unknown) => {
      if (this.#connection.closed.aborted) return;
      this.#log.warn({ err: loggable(error) }, 'A terminal was cut.');
      this.#connection.close(lostCode, 'The connection to the computer was lost.');
    });
  }

  async #show(after: number | undefined): Promise<void> {
    const { processId, state } = this.#process;
    this.#say({ type: 'attached', processId, writer: this.#writer, state, ...this.#told });
    const position = after ?? (await this.#showScreen());
    if (after !== undefined) this.#say({ type: 'position', position });
    const signal = this.#connection.closed;
    const output = this.#client.output(processId, { after: position, follow: true, signal });
    for await (const record of inTurn(output, { userId: this.#userId, signal })) {
      await this.#pass(record);
      if (record.kind === 'exit') return this.#connection.close(endedCode, 'The process has ended.');
    }
  }

  async #showScreen(): Promise<number> {
    const { position, cols, rows, data } = await this.#client.screen(this.#process.processId);
    this.#told = { cols, rows };
    await this.#sent(this.#say({ type: 'screen', position, cols, rows, data }));
    return position;
  }

  async #pass(record: OutputRecord): Promise<void> {
    switch (record.kind) {
      case 'gap': {
        const { droppedBytes } = noteOf<Gap>(record);
        return this.#sent(this.#say({ type: 'gap', position: record.position, droppedBytes }));
      }
      case 'resize': {
        this.#told = noteOf<Size>(record);
        return this.#sent(this.#say({ type: 'resize', ...this.#told }));
      }
      case 'exit': {
        const { state, exitCode, signal, killedBy } = noteOf<Exit>(record);
        return this.#sent(this.#say({ type: 'exit', state, exitCode, signal, killedBy }));
      }
      default:
        return this.#sent(this.#connection.send(Buffer.from(record.payload)));
    }
  }

  async #sent(isTaken: boolean): Promise<void> {
    if (!isTaken) await this.#connection.drained();
  }

  #say(message: ServerMessage): boolean {
    return this.#connection.send(JSON.stringify(message));
  }

  #take(data: Buffer, isBinary: boolean): void {
    let message: ClientMessage;
    try {
      message = readMessage(data, isBinary);
    } catch (error) {
      this.#refuse(error);
      return;
    }
    this.#waiting.push(message);
    if (this.#waiting.length >= mostWaiting && !this.#isPaused) {
      this.#isPaused = true;
      this.#connection.pause();
    }
    if (!this.#isWriting) void this.#write();
  }

  /** Handles messages one after the other, in their order. */
  async #write(): Promise<void> {
    this.#isWriting = true;
    while (!this.#connection.closed.aborted) {
      const message = this.#waiting.shift();
      if (message === undefined) break;
      if (this.#isPaused && this.#waiting.length < mostWaiting / 2) {
        this.#isPaused = false;
        this.#connection.resume();
      }
      await this.#do(message).catch((error: unknown) =>
        this.#refuse(error, message.type === 'input' ? message.seq : undefined),
      );
    }
    this.#isWriting = false;
  }

  async #do(message: ClientMessage): Promise<void> {
    const { processId } = this.#process;
    if (message.type === 'signal') return void (await this.#client.signalProcess(processId, message.signal));
    if (message.type === 'resize') {
      const { cols, rows } = message;
      this.#size = { cols, rows };
      return this.#fit();
    }
    const { seq, bytes } = message;
    await this.#fit();
    await this.#client.sendInput(processId, { number: { writer: this.#writer, seq }, bytes });
    this.#say({ type: 'accepted', seq });
  }

  /** The terminal has the size of the client that was active last. */
  async #fit(): Promise<void> {
    const wanted = this.#size;
    if (wanted === undefined || (wanted.cols === this.#told.cols && wanted.rows === this.#told.rows)) return;
    await this.#client.resizeProcess(this.#process.processId, wanted);
    this.#told = wanted;
  }

  #refuse(error: unknown, seq?: number): void {
    if (!(error instanceof DomainError)) {
      this.#log.warn({ err: loggable(error) }, 'A terminal’s message failed.');
    }
    const { code, message } = error instanceof DomainError ? error : { code: 'INTERNAL_ERROR', message: 'It failed.' };
    this.#say({ type: 'problem', code, detail: message, ...(seq !== undefined && { seq }) });
  }
}
