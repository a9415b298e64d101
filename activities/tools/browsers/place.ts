import { DomainError, notFound } from '../../../base/errors.ts';
import { Browser } from '../../../integrations/browsers/browser.ts';
import type { LiveComputers } from '../../../integrations/computers/liveComputers.ts';
import type { Destination } from '../../../integrations/egress/hostPattern.ts';
import { browserSpec } from '../../../models/browsers/folders.ts';
import { findProfileNamed } from '../../../models/browsers/profile.ts';
import { defaultProfileName } from '../../../models/browsers/profiles.ts';
import {
  type BrowserSession,
  endCodeOf,
  endDetailOf,
  findBrowser,
  hasEnded,
  liveSessions,
} from '../../../models/browsers/session.ts';
import { failBrowser } from '../../../models/browsers/steps.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import type { Database } from '../../../models/database/database.ts';
import { lastDecision } from '../../../models/egress/lastDecision.ts';
import type { CommonDeps } from '../../deps.ts';
import { actorOfTurn } from '../calls.ts';
import type { ToolContext } from '../tool.ts';

export interface BrowserToolDeps extends Pick<CommonDeps, 'config' | 'workflows'> {
  database: Database;
  liveComputers: LiveComputers;
}

export interface BrowserInput {
  sessionId?: string;
}

/** A running browser and its session. */
export interface OpenBrowser {
  session: BrowserSession;
  browser: Browser;
}

export const browserProperties = {
  sessionId: {
    type: 'string',
    minLength: 1,
    maxLength: 80,
    description: 'The session id of another browser. Default: the usual browser.',
  },
};

/** A call's session, in the turn’s own space. Throws errors with texts for the model. */
export async function sessionFor(
  { database }: Pick<BrowserToolDeps, 'database'>,
  { spaceId }: Pick<Turn, 'spaceId'>,
  { sessionId }: BrowserInput,
): Promise<BrowserSession> {
  if (sessionId !== undefined) {
    const session = await findBrowser(database, sessionId);
    if (session?.spaceId !== spaceId) throw notFound('browser session');
    return session;
  }
  const usual = await usualSession(database, spaceId);
  if (usual !== undefined) return usual;
  throw new DomainError('notFound', 'BROWSER_MISSING', 'No browser is open. browser_open opens one.');
}

/** The session that uses the space’s default profile now, unless it has ended. */
export async function usualSession(database: Database, spaceId: string): Promise<BrowserSession | undefined> {
  const profile = await findProfileNamed(database, spaceId, defaultProfileName);
  if (profile === undefined) return undefined;
  return (await liveSessions(database, [profile.id])).find((session) => !hasEnded(session));
}

/** Connects to a session’s Chromium. Looking wakes no computer; acting counts as use of the computer. */
export async function reach(
  { database, liveComputers }: Pick<BrowserToolDeps, 'database' | 'liveComputers'>,
  turn: Turn,
  session: BrowserSession,
  use: 'looks' | 'acts',
): Promise<OpenBrowser> {
  const code = endCodeOf(session);
  if (code !== undefined) throw hasEndedError(session, code);
  if (session.status === 'starting') {
    throw new DomainError('conflict', 'BROWSER_STARTING', 'The browser is starting. Try again in a moment.');
  }
  const client =
    use === 'looks' ? await liveComputers.unpaused(session) : await liveComputers.awake(session, actorOfTurn(turn));
  const decisionOn = (to: Destination) => lastDecision(database, session.spaceId, to);
  return { session, browser: new Browser(client, browserSpec(session), { decisionOn }) };
}

/** Works with a browser. If its Chromium has ended, this ends the session and tells the model why. */
export async function whileItLives<T>(
  { database, workflows }: Pick<BrowserToolDeps, 'database' | 'workflows'>,
  { session }: Pick<OpenBrowser, 'session'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'BROWSER_ENDED') throw error;
    const latest = await findBrowser(database, session.id);
    const code = latest === undefined ? 'BROWSER_DELETED' : (endCodeOf(latest) ?? 'BROWSER_ENDED');
    await failBrowser(database, session.id, code);
    void workflows.startBrowser(session);
    throw hasEndedError(session, code);
  }
}

/** The front tab. A call that names no tab means this one. */
export async function frontTab({ browser }: OpenBrowser, { signal }: Pick<ToolContext, 'signal'>): Promise<string> {
  const tabs = await browser.tabs({ signal });
  const tab = tabs.find(({ isActive }) => isActive) ?? tabs[0];
  if (tab === undefined)
    throw new DomainError('conflict', 'TAB_NOT_FOUND', 'This browser has no tab. browser_open opens one.');
  return tab.id;
}

function hasEndedError({ id }: BrowserSession, code: string): DomainError {
  const detail = `The browser ${id} has ended. ${endDetailOf(code)} browser_open opens another one.`;
  return new DomainError('gone', 'BROWSER_SESSION_ENDED', detail);
}
