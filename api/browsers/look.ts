import { DomainError, notFound } from '../../base/errors.ts';
import { Browser } from '../../integrations/browsers/browser.ts';
import type { WokenBy } from '../../integrations/computers/liveComputers.ts';
import { isDisplayAlive } from '../../integrations/desktops/desktop.ts';
import type { Destination } from '../../integrations/egress/hostPattern.ts';
import { browserSpec } from '../../models/browsers/folders.ts';
import { type BrowserLink, findBrowserLink } from '../../models/browsers/links.ts';
import {
  type BrowserRef,
  type BrowserSession,
  endCodeOf,
  endDetailOf,
  getBrowser,
} from '../../models/browsers/session.ts';
import { failBrowser, noteDeath } from '../../models/browsers/steps.ts';
import { lastDecision } from '../../models/egress/lastDecision.ts';
import { mayUseLink } from '../../models/identity/authority.ts';
import type { RouteDeps } from '../frame/deps.ts';

type LookDeps = Pick<RouteDeps, 'database' | 'launcher' | 'liveComputers'>;
type LinkDeps = Pick<RouteDeps, 'database' | 'identity'>;

/** A session as it is now: one whose Chromium has ended says so. Throws 404. */
export async function lookAtBrowser(deps: LookDeps, ref: BrowserRef): Promise<BrowserSession> {
  return asItIs(deps, await getBrowser(deps.database, ref));
}

/** Looks whether a session's Chromium runs. If its computer cannot be asked now, the session is as its row says. */
export async function asItIs(deps: LookDeps, session: BrowserSession): Promise<BrowserSession> {
  const { database, launcher, liveComputers } = deps;
  const code = endCodeOf(session);
  if (code !== undefined) {
    if (session.endedAt !== null) return session;
    await failBrowser(database, session.id, code);
  } else {
    if (session.status !== 'running') return session;
    try {
      const client = await liveComputers.asIs(session);
      if (await new Browser(client, browserSpec(session)).isAlive()) return session;
      await noteDeath(database, session.id, { hasDisplay: await isDisplayAlive(client, session) });
    } catch (error) {
      if (error instanceof DomainError) return session;
      throw error;
    }
  }
  // Its row has the time of its end now. Its workflow does the rest.
  void launcher.startBrowser(session);
  return getBrowser(database, { spaceId: session.spaceId, sessionId: session.id });
}

/** A session that has not ended. Throws 404, 410 `BROWSER_SESSION_ENDED`. */
export async function openBrowser({ database }: Pick<LookDeps, 'database'>, ref: BrowserRef): Promise<BrowserSession> {
  const session = await getBrowser(database, ref);
  const code = endCodeOf(session);
  if (code !== undefined) throw browserEnded(code);
  return session;
}

/**
 * Calls `act` with the Chromium of a session. If Chromium has ended, this notes that the session has ended. A caller
 * who only looks wakes no computer. Anything else counts as use of the computer, and continues a paused one. Throws
 * 404, 409 `BROWSER_STARTING` or `COMPUTER_PAUSED`, 410 `BROWSER_SESSION_ENDED`.
 */
export async function withBrowser<T>(
  deps: LookDeps,
  ref: BrowserRef,
  user: WokenBy | 'looks',
  act: (browser: Browser, session: BrowserSession) => Promise<T>,
): Promise<T> {
  const session = await openBrowser(deps, ref);
  if (session.status === 'starting') {
    throw new DomainError('conflict', 'BROWSER_STARTING', 'The browser session is starting. Try again in a moment.');
  }
  const { liveComputers } = deps;
  try {
    const client = user === 'looks' ? await liveComputers.unpaused(session) : await liveComputers.awake(session, user);
    const decisionOn = (to: Destination) => lastDecision(deps.database, session.spaceId, to);
    return await act(new Browser(client, browserSpec(session), { decisionOn }), session);
  } catch (error) {
    const isOver = error instanceof DomainError && ['BROWSER_ENDED', 'COMPUTER_NOT_RUNNING'].includes(error.code);
    if (!isOver) throw error;
    const code = endCodeOf(await asItIs(deps, session));
    throw code === undefined ? error : browserEnded(code);
  }
}

export function browserEnded(code: string): DomainError {
  return new DomainError('gone', 'BROWSER_SESSION_ENDED', `The browser session has ended. ${endDetailOf(code)}`);
}

/** A link by its token, and whether it holds now: its maker must still be allowed to use browsers. */
export async function standingOfLink(
  { database, identity }: LinkDeps,
  token: string,
): Promise<{ link: BrowserLink | undefined; isAllowed: boolean }> {
  const link = await findBrowserLink(database, token);
  if (link === undefined) return { link, isAllowed: false };
  const { spaceId, createdBy: userId, apiKeyId, loginSessionId: sessionId } = link;
  return { link, isAllowed: await mayUseLink(identity, { spaceId, userId, apiKeyId, sessionId }, 'editor') };
}

/** A link that holds now. Throws 404 without saying why the link does not hold. */
export async function admitByLink(deps: LinkDeps, token: string): Promise<BrowserLink> {
  const { link, isAllowed } = await standingOfLink(deps, token);
  if (link === undefined || !isAllowed) throw notFound('link');
  return link;
}
