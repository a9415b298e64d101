import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { WebSocket } from 'ws';
import type { Browser } from '../../../integrations/browsers/browser.ts';
import type { WokenBy } from '../../../integrations/computers/liveComputers.ts';
import { type BrowserSession, endCodeOf, endDetailOf, findBrowser } from '../../../models/browsers/session.ts';
import { DomainError } from '../../../models/errors.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import type { Connection } from '../../frame/connection.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { asItIs } from '../look.ts';
import { standingOfLink } from './admit.ts';

/** Why a script is cut, beside what the frame closes for. docs/browsers.md lists them. */
const closeCodes = {
  ended: 4001,
  over: { code: 4002, reason: 'This link has expired or was revoked. Ask for a new one.' },
  forbidden: { code: 4003, reason: 'Whoever made this link may no longer do this.' },
  violation: { code: 4004, reason: 'Messages of the DevTools protocol are text.' },
  lost: { code: 4005, reason: 'The connection to the browser was lost.' },
} as const;

const lookAgainMs = 3_000;
/** How often it is noted that a script uses the computer. */
const noteUseMs = 60_000;
/** How long the end of Chromium may take to be known after its connections were cut. */
const deathMs = 3_000;
/** Above this, a script waits until Chromium has read. */
const highWaterBytes = 1_048_576;
const longestReason = 120;

interface Options {
  deps: Pick<RouteDeps, 'database' | 'identity' | 'launcher' | 'liveComputers'>;
  connection: Connection;
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
      this.#close(closeCodes.lost.code, error instanceof DomainError ? error.message : closeCodes.lost.reason);
    });
  }

  async #pass(): Promise<void> {
    const { connection, browser } = this.#options;
    // Nothing is read of it before there is somebody to give it to.
    connection.pause();
    let chromium: WebSocket | undefined;
    connection.onMessage((data, isBinary) => {
      if (isBinary) return this.#close(closeCodes.violation.code, closeCodes.violation.reason);
      this.#isUsed = true;
      if (chromium !== undefined) this.#order(chromium, data);
    });
    chromium = await browser.attach(connection.closed);
    // The close that follows is what counts.
    chromium.on('error', () => undefined);
    const cut = () => chromium?.terminate();
    connection.closed.addEventListener('abort', cut);
    if (connection.closed.aborted) cut();
    chromium.on('message', (data: Buffer) => void this.#tell(chromium, data));
    await once(chromium, 'open');
    connection.resume();
    if (chromium.readyState !== chromium.CLOSED) await once(chromium, 'close');
    await this.#sayEnd();
  }

  /** Of what a script sends, no more is kept than one message beyond what Chromium has room for. */
  #order(chromium: WebSocket, data: Buffer): void {
    const { connection } = this.#options;
    if (chromium.readyState !== chromium.OPEN) return;
    chromium.send(data, { binary: false }, () => {
      if (chromium.bufferedAmount <= highWaterBytes) connection.resume();
    });
    if (chromium.bufferedAmount > highWaterBytes) connection.pause();
  }

  async #tell(chromium: WebSocket | undefined, data: Buffer): Promise<void> {
    const { connection } = this.#options;
    if (connection.sendText(data)) return;
    chromium?.pause();
    await connection.drained();
    chromium?.resume();
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
    if (code !== undefined) return this.#close(closeCodes.ended, endDetailOf(code));
    if (link === undefined) return this.#close(closeCodes.over.code, closeCodes.over.reason);
    if (!isAllowed) return this.#close(closeCodes.forbidden.code, closeCodes.forbidden.reason);
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
      if (code !== undefined) return this.#close(closeCodes.ended, endDetailOf(code));
      await delay(100);
    } while (Date.now() < deadline);
    this.#close(closeCodes.lost.code, closeCodes.lost.reason);
  }

  #close(code: number, reason: string): void {
    const { connection } = this.#options;
    connection.close(code, reason.slice(0, longestReason));
    // The script’s answer to that is read.
    connection.resume();
  }
}
