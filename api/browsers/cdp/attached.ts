import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import { lookUntil } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import type { Browser } from '../../../integrations/browsers/browser.ts';
import { maxMessageBytes as maxAnswerBytes } from '../../../integrations/browsers/cdp/connection.ts';
import type { WokenBy } from '../../../integrations/computers/liveComputers.ts';
import { type BrowserSession, endCodeOf, endDetailOf, findBrowser } from '../../../models/browsers/session.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import type { Connection } from '../../frame/connection.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { asItIs, standingOfLink } from '../look.ts';
import { Arrivals, Gate } from './arrivals.ts';
import type { MessageMemory } from './messageMemory.ts';

/** Why a script is cut off, besides the frame's own reasons. docs/browsers.md lists the codes. */
const closeCodes = {
  ended: 4001,
  over: { code: 4002, reason: 'This link has expired or was revoked. Ask for a new one.' },
  forbidden: { code: 4003, reason: 'The user who created this link no longer has access.' },
  violation: { code: 4004, reason: 'Send messages of the DevTools protocol as text.' },
  lost: { code: 4005, reason: 'The connection to the browser was lost.' },
  tooLarge: { code: 4006, reason: 'A message of the browser was larger than 48 MiB.' },
  tooSlow: { code: 4007, reason: 'A large message took too long to send.' },
} as const;

const lookAgainMs = 3_000;
/** How often we note that a script uses the computer. */
const noteUseMs = 60_000;
/** How long to wait, after the connection's end, for Chromium's end to be known. */
const deathMs = 3_000;
/** Above this, a script waits until Chromium has read. */
const highWaterBytes = 1_048_576;
const longestReason = 120;

/** Whether `ws` has refused a message that is too long. */
const isTooLarge = (error: Error) => 'code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

interface Options {
  deps: Pick<RouteDeps, 'database' | 'identity' | 'launcher' | 'liveComputers'>;
  connection: Connection;
  /** The stream of the script’s messages, and the limit for one message. */
  stream: Readable;
  maxMessageBytes: number;
  memory: MessageMemory;
  token: string;
  browser: Browser;
  session: BrowserSession;
  by: WokenBy;
  log: Pick<Logger, 'warn'>;
}

/** A script that is attached to a Chromium. Messages pass unchanged in both directions while its link holds. */
export class Attached {
  readonly #options: Options;
  #isUsed = false;
  #notedAt = Date.now();
  #isLooking = false;

  constructor(options: Options) {
    this.#options = options;
  }

  run(): void {
    const { connection, log } = this.#options;
    const timer = setInterval(() => void this.#look(), lookAgainMs);
    connection.closed.addEventListener('abort', () => clearInterval(timer));
    this.#pass().catch((error: unknown) => {
      if (connection.closed.aborted) return;
      if (!(error instanceof DomainError)) log.warn({ err: loggable(error) }, 'A script was cut from its browser.');
      const { code, reason } = closeCodes.lost;
      this.#close({ code, reason: error instanceof DomainError ? error.message : reason });
    });
  }

  async #pass(): Promise<void> {
    const { connection, stream, browser, maxMessageBytes } = this.#options;
    const script = new Gate(connection);
    const orders = this.#arrivals(stream, script, maxMessageBytes);
    // Read nothing from the script until Chromium can receive it.
    script.close('attaching');
    let chromium: WebSocket | undefined;
    connection.onMessage((data, isBinary) => {
      if (isBinary) return this.#close(closeCodes.violation);
      this.#isUsed = true;
      if (chromium !== undefined) void this.#order(chromium, data, orders, script);
    });
    const attached = await browser.attach(connection.closed);
    chromium = attached.socket;
    chromium.on('error', (error) => {
      // After any other error, the `close` event that follows decides.
      if (isTooLarge(error)) this.#close(closeCodes.tooLarge);
    });
    const cut = () => chromium?.terminate();
    connection.closed.addEventListener('abort', cut);
    if (connection.closed.aborted) cut();
    chromium.once('open', () => {
      const answers = new Gate(attached.socket);
      const answered = this.#arrivals(attached.stream, answers, maxAnswerBytes);
      attached.socket.on('message', (data: Buffer) => void this.#tell(data, answered, answers));
    });
    await once(chromium, 'open');
    script.open('attaching');
    if (chromium.readyState !== chromium.CLOSED) await once(chromium, 'close');
    await this.#sayEnd();
  }

  #arrivals(stream: Readable, gate: Gate, maxMessageBytes: number): Arrivals {
    const { memory, session, connection } = this.#options;
    return new Arrivals(stream, {
      ...{ memory, maxMessageBytes, gate },
      owner: session.spaceId,
      signal: connection.closed,
      onSlow: () => this.#close(closeCodes.tooSlow),
    });
  }

  /** Passes an order on. While Chromium is behind, at most one more message of the script is kept. */
  async #order(chromium: WebSocket, data: Buffer, orders: Arrivals, script: Gate): Promise<void> {
    const arrived = orders.arrived(data.length);
    if (chromium.readyState === chromium.OPEN) {
      const sent = new Promise<void>((resolve) => chromium.send(data, { binary: false }, () => resolve()));
      if (chromium.bufferedAmount > highWaterBytes) script.close('behind');
      await sent;
      if (chromium.bufferedAmount <= highWaterBytes) script.open('behind');
    }
    (await arrived)?.[Symbol.dispose]();
  }

  async #tell(data: Buffer, answered: Arrivals, answers: Gate): Promise<void> {
    const { connection } = this.#options;
    const arrived = answered.arrived(data.length);
    if (!connection.sendText(data)) {
      answers.close('behind');
      await connection.drained();
      answers.open('behind');
    }
    (await arrived)?.[Symbol.dispose]();
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    // A short failure of the database cuts off no script: the next look decides.
    await this.#lookNow().catch(() => undefined);
    this.#isLooking = false;
  }

  async #lookNow(): Promise<void> {
    const { deps, token, session, by } = this.#options;
    const [{ link, isAllowed }, latest] = await Promise.all([
      standingOfLink(deps, token),
      findBrowser(deps.database, session.id),
    ]);
    const code = latest === undefined ? 'BROWSER_DELETED' : endCodeOf(latest);
    if (code !== undefined) return this.#close({ code: closeCodes.ended, reason: endDetailOf(code) });
    if (link === undefined) return this.#close(closeCodes.over);
    if (!isAllowed) return this.#close(closeCodes.forbidden);
    if (!this.#isUsed || Date.now() - this.#notedAt < noteUseMs) return;
    this.#isUsed = false;
    this.#notedAt = Date.now();
    await deps.liveComputers.awake(session, by);
  }

  /** Tells the script whether Chromium has ended or only the connection to it. */
  async #sayEnd(): Promise<void> {
    const { connection, deps, session } = this.#options;
    if (connection.closed.aborted) return;
    const look = async () => {
      const latest = await findBrowser(deps.database, session.id);
      return latest === undefined ? 'BROWSER_DELETED' : endCodeOf(await asItIs(deps, latest));
    };
    const isDone = (code: unknown) => code !== undefined || connection.closed.aborted;
    const code = await lookUntil(look, isDone, { firstMs: 100, forMs: deathMs });
    this.#close(code === undefined ? closeCodes.lost : { code: closeCodes.ended, reason: endDetailOf(code) });
  }

  #close({ code, reason }: { code: number; reason: string }): void {
    const { connection } = this.#options;
    connection.close(code, reason.slice(0, longestReason));
    // The script’s answer to the close must be read.
    connection.resume();
  }
}
