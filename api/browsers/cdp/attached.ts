import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import { DomainError } from '../../../base/errors.ts';
import type { Browser } from '../../../integrations/browsers/browser.ts';
import { maxMessageBytes as maxAnswerBytes } from '../../../integrations/browsers/cdp/connection.ts';
import type { WokenBy } from '../../../integrations/computers/liveComputers.ts';
import { type BrowserSession, endCodeOf, endDetailOf, findBrowser } from '../../../models/browsers/session.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import type { Connection } from '../../frame/connection.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { asItIs } from '../look.ts';
import { standingOfLink } from './admit.ts';
import { Arrivals, Gate } from './arrivals.ts';
import type { MessageMemory } from './messageMemory.ts';

/** Why a script is cut, beside what the frame closes for. docs/browsers.md lists them. */
const closeCodes = {
  ended: 4001,
  over: { code: 4002, reason: 'This link has expired or was revoked. Ask for a new one.' },
  forbidden: { code: 4003, reason: 'Whoever made this link may no longer do this.' },
  violation: { code: 4004, reason: 'Messages of the DevTools protocol are text.' },
  lost: { code: 4005, reason: 'The connection to the browser was lost.' },
  tooLarge: { code: 4006, reason: 'A message of the browser was larger than 48 MiB.' },
  tooSlow: { code: 4007, reason: 'A large message took too long, while others waited.' },
} as const;

const lookAgainMs = 3_000;
/** How often it is noted that a script uses the computer. */
const noteUseMs = 60_000;
/** How long the end of Chromium may take to be known after its connections were cut. */
const deathMs = 3_000;
/** Above this, a script waits until Chromium has read. */
const highWaterBytes = 1_048_576;
const longestReason = 120;

/** Where `ws` has heard of a message that is longer than it takes. */
const isTooLarge = (error: Error) => 'code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH';

interface Options {
  deps: Pick<RouteDeps, 'database' | 'identity' | 'launcher' | 'liveComputers'>;
  connection: Connection;
  /** What the script’s messages come on, and how long one may be. */
  stream: Readable;
  maxMessageBytes: number;
  memory: MessageMemory;
  token: string;
  browser: Browser;
  session: BrowserSession;
  by: WokenBy;
  log: Pick<Logger, 'warn'>;
}

/** One script that is attached to a Chromium: messages pass both ways as they are, while its link holds. */
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
    // Nothing is read of it before there is somebody to give it to.
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
      // Of all others, the close that follows is what counts.
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

  /** Of what a script sends, no more is kept than one message beyond what Chromium has room for. */
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
    // A database that is down for a moment cuts nobody: the next look decides.
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

  /** Chromium is gone, or only the way to it: says which. */
  async #sayEnd(): Promise<void> {
    const { connection, deps, session } = this.#options;
    const deadline = Date.now() + deathMs;
    do {
      if (connection.closed.aborted) return;
      const latest = await findBrowser(deps.database, session.id);
      const code = latest === undefined ? 'BROWSER_DELETED' : endCodeOf(await asItIs(deps, latest));
      if (code !== undefined) return this.#close({ code: closeCodes.ended, reason: endDetailOf(code) });
      await delay(100);
    } while (Date.now() < deadline);
    this.#close(closeCodes.lost);
  }

  #close({ code, reason }: { code: number; reason: string }): void {
    const { connection } = this.#options;
    connection.close(code, reason.slice(0, longestReason));
    // The script’s answer to that is read.
    connection.resume();
  }
}
