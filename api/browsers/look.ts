import { DomainError } from '../../base/errors.ts';
import { Browser } from '../../integrations/browsers/browser.ts';
import type { WokenBy } from '../../integrations/computers/liveComputers.ts';
import { isDisplayAlive } from '../../integrations/desktops/desktop.ts';
import type { Destination } from '../../integrations/egress/hostPattern.ts';
import {
  type BrowserRef,
  type BrowserSession,
  endCodeOf,
  endDetailOf,
  getBrowser,
} from '../../models/browsers/session.ts';
import { browserSpec } from '../../models/browsers/spec.ts';
import { failBrowser, noteDeath } from '../../models/browsers/steps.ts';
import { lastDecision } from '../../models/egress/lastDecision.ts';
import type { RouteDeps } from '../frame/deps.ts';

export type LookDeps = Pick<RouteDeps, 'database' | 'launcher' | 'liveComputers'>;

/** A session as it is now: one whose Chromium has ended by itself says so. Throws 404. */
export async function lookAtBrowser(deps: LookDeps, ref: BrowserRef): Promise<BrowserSession> {
  return asItIs(deps, await getBrowser(deps.database, ref));
}

/** What its computer cannot be asked now is as its row says. */
export async function asItIs(deps: LookDeps, session: BrowserSession): Promise<BrowserSession> {
  const code = endCodeOf(session);
  if (code !== undefined) return session.endedAt === null ? noteEnd(deps, session, code) : session;
  if (session.status !== 'running') return session;
  try {
    const client = await deps.liveComputers.asIs(session);
    if (await new Browser(client, browserSpec(session)).isAlive()) return session;
    await noteDeath(deps.database, session.id, { hasDisplay: await isDisplayAlive(client, session) });
  } catch (error) {
    if (error instanceof DomainError) return session;
    throw error;
  }
  return told(deps, session);
}

/** What has ended has a time for that as soon as somebody looks, and its workflow does the rest. */
async function noteEnd(deps: LookDeps, session: BrowserSession, code: string): Promise<BrowserSession> {
  await failBrowser(deps.database, session.id, code);
  return told(deps, session);
}

function told({ database, launcher }: LookDeps, session: BrowserSession): Promise<BrowserSession> {
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
 * Does something with the Chromium of a session; where that has ended meanwhile, the session has. Whoever only looks
 * wakes nothing; what somebody does counts as use of the computer, and has one that is paused go on. Throws 404, 409
 * `BROWSER_STARTING` or `COMPUTER_PAUSED`, 410 `BROWSER_SESSION_ENDED`.
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
