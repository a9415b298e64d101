import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { lookUntil } from '../../../base/async.ts';
import { DomainError } from '../../../base/errors.ts';
import { Merged } from '../../../base/merged.ts';
import { ViewerFilter, ViewerViolation } from '../../../integrations/desktops/rfb/viewerFilter.ts';
import { controllerIn } from '../../../models/desktops/control.ts';
import { type DesktopLink, findDesktopLink, renewDesktopLink } from '../../../models/desktops/links.ts';
import { type DesktopSession, endCodeOf, endDetailOf, findDesktop } from '../../../models/desktops/session.ts';
import { mayUseLink } from '../../../models/identity/authority.ts';
import type { DesktopViewer } from '../../../models/identity/desktopTokens.ts';
import { linkHolds } from '../../../models/links/links.ts';
import { loggable } from '../../../telemetry/loggable.ts';
import type { Connection } from '../../frame/connection.ts';
import type { ApiDeps } from '../../frame/deps.ts';
import { asItIs, desktopChanges, xServerOf } from '../look.ts';
import { PageControl } from './pageControl.ts';

/** A viewer, the link that admits it, and the session that it shows. */
export interface Viewed {
  viewer: DesktopViewer;
  link: DesktopLink;
  session: DesktopSession;
}

/** Why a page's connection is closed, besides the frame's own reasons. The page shows the reason. */
export const viewCodes = {
  ended: 4001,
  over: { code: 4002, reason: 'This link has expired or was revoked. Ask for a new one.' },
  unknown: { code: 4002, reason: 'This address is wrong or no longer valid. Ask for a new one.' },
  forbidden: { code: 4003, reason: 'The user of this link no longer has access.' },
  violation: 4004,
  lost: { code: 4005, reason: 'The connection to the computer was lost.' },
} as const;

const lookAgainMs = 3_000;
/** The shortest time between two looks of a page, however often something changes. */
const restMs = 250;
/** A page may type for this long after another process has taken its control. */
const keepEveryMs = 1_000;
/** How long to wait, after the connection's end, for the X server's end to be known. */
const deathMs = 3_000;
const longestReason = 120;

/** All pages of a session share one look at its row. */
const sessionLooks = new Merged<DesktopSession | undefined>();

interface Options extends Viewed {
  deps: ApiDeps;
  connection: Connection;
  log: Pick<Logger, 'warn'>;
}

/**
 * A page that shows a desktop. It gets what the X server draws, and its messages reach the X server if it may send
 * them.
 */
export class Viewing {
  readonly #options: Options;
  readonly #control: PageControl;
  readonly #filter: ViewerFilter;
  readonly #looks = new Merged<boolean>({ restMs });
  #tokenAt = Date.now();
  #told = '';

  constructor(options: Options) {
    this.#options = options;
    const { deps, link, session } = options;
    this.#control = new PageControl({ database: deps.database, sessionId: session.id, mayControl: link.control });
    this.#filter = new ViewerFilter(() => this.#control.isHeld, { hasClipboard: link.control });
  }

  run(): void {
    const { connection, session, log } = this.#options;
    const { closed } = connection;
    const look = () => void this.#look().catch(() => undefined); // A short failure of the database closes nothing.
    const timers = [setInterval(look, lookAgainMs), setInterval(() => void this.#keep(), keepEveryMs)];
    desktopChanges.on(session.id, look);
    closed.addEventListener('abort', () => {
      for (const timer of timers) clearInterval(timer);
      desktopChanges.off(session.id, look);
      void this.#control.release().catch(() => undefined);
    });
    this.#begin().catch((error: unknown) => {
      if (closed.aborted) return;
      if (!(error instanceof DomainError)) log.warn({ err: loggable(error) }, 'A desktop’s page was cut.');
      this.#close(viewCodes.lost.code, error instanceof DomainError ? error.message : viewCodes.lost.reason);
    });
  }

  async #begin(): Promise<void> {
    const { connection, deps, session } = this.#options;
    let server: Duplex | undefined;
    connection.onMessage((data, isBinary) => {
      if (!isBinary) return void this.#control.order(data);
      try {
        const passed = this.#filter.push(data);
        if (server !== undefined) this.#write(server, passed);
      } catch (error) {
        if (!(error instanceof ViewerViolation)) throw error;
        this.#close(viewCodes.violation, error.message);
      }
    });
    // Read nothing from the page until the X server can receive it.
    connection.pause();
    if (!(await this.#look())) return;
    await this.#control.take({ isTakeover: false });
    const ref = { spaceId: session.spaceId, computerId: session.computerId, sessionId: session.id };
    server = await (await xServerOf(deps, ref)).server.view(connection.closed);
    server.on('error', () => undefined);
    connection.closed.addEventListener('abort', () => server?.destroy());
    if (connection.closed.aborted) return void server.destroy();
    connection.resume();
    for await (const chunk of server as AsyncIterable<Buffer>) {
      if (!connection.send(chunk)) await connection.drained();
      if (connection.closed.aborted) return;
    }
    await this.#sayEnd();
  }

  #write(server: Duplex, bytes: Buffer): void {
    if (bytes.length === 0 || server.destroyed || server.write(bytes)) return;
    const { connection } = this.#options;
    connection.pause();
    const resume = () => connection.resume();
    once(server, 'drain').then(resume, resume);
  }

  /** Whether the page may stay. If not, the connection is closed with the reason. */
  #look(): Promise<boolean> {
    return this.#looks.run(this.#options.session.id, () => this.#lookNow());
  }

  async #lookNow(): Promise<boolean> {
    const { connection, deps, link, viewer, session } = this.#options;
    if (connection.closed.aborted) return false;
    const { database, identity } = deps;
    const [now, latest] = await Promise.all([
      findDesktopLink(database, link.id),
      sessionLooks.run(session.id, () => findDesktop(database, session.id)),
    ]);
    const code = latest === undefined ? 'DESKTOP_DELETED' : endCodeOf(latest);
    if (code !== undefined) return this.#close(viewCodes.ended, endDetailOf(code));
    if (now === undefined || !linkHolds(now)) return this.#close(viewCodes.over.code, viewCodes.over.reason);
    const { spaceId } = link;
    const needed = link.control ? 'editor' : 'viewer';
    if (!(await mayUseLink(identity, { ...viewer, spaceId }, needed))) {
      return this.#close(viewCodes.forbidden.code, viewCodes.forbidden.reason);
    }
    await this.#renew(now);
    this.#tell(latest);
    return true;
  }

  /** Extends a link while its page is open. The page gets a new token for its next connection. */
  async #renew(link: DesktopLink): Promise<void> {
    const { connection, deps, viewer } = this.#options;
    if (Date.now() - this.#tokenAt < (link.ttlSeconds * 1_000) / 2) return;
    const until = await renewDesktopLink(deps.database, link);
    this.#tokenAt = Date.now();
    const token = await deps.identity.desktopTokens.sign(viewer, until);
    connection.send(JSON.stringify({ type: 'token', token }));
  }

  #tell(session: DesktopSession | undefined): void {
    const { connection, link } = this.#options;
    const control = this.#control.note(controllerIn(session));
    const resolution = `${session?.width}x${session?.height}`;
    const isRecorded = session?.recordingId != null;
    const state = JSON.stringify({ type: 'state', mayControl: link.control, control, resolution, isRecorded });
    if (state === this.#told) return;
    this.#told = state;
    connection.send(state);
  }

  async #keep(): Promise<void> {
    if (!(await this.#control.keep())) await this.#look().catch(() => undefined);
  }

  /** Tells the page whether the X server has ended or only the connection to it. */
  async #sayEnd(): Promise<void> {
    const { deps, session } = this.#options;
    const look = async () => {
      const latest = await findDesktop(deps.database, session.id);
      return latest === undefined ? 'DESKTOP_DELETED' : endCodeOf(await asItIs(deps, latest));
    };
    const code = await lookUntil(look, (seen) => seen !== undefined, { firstMs: 100, forMs: deathMs });
    if (code !== undefined) this.#close(viewCodes.ended, endDetailOf(code));
    else this.#close(viewCodes.lost.code, viewCodes.lost.reason);
  }

  #close(code: number, reason: string): false {
    const { connection } = this.#options;
    connection.close(code, reason.slice(0, longestReason));
    // The page's answer to the close must be read.
    connection.resume();
    return false;
  }
}
