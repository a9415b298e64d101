import { lookUntil } from '../../../base/async.ts';
import { DomainError, notFound } from '../../../base/errors.ts';
import { computerOf, defaultProfile } from '../../../models/browsers/profiles.ts';
import { type BrowserSession, getBrowser, hasEnded, liveSessions } from '../../../models/browsers/session.ts';
import { createBrowser } from '../../../models/browsers/sessions.ts';
import { findDesktop } from '../../../models/desktops/session.ts';
import { resolutionOf } from '../../../models/desktops/sessions.ts';
import { actorOfTurn, idOfCall } from '../calls.ts';
import type { ToolContext } from '../tool.ts';
import { type BrowserToolDeps, usualSession } from './place.ts';

export const startMs = 120_000;
const patience = { firstMs: 100, forMs: startMs };
const resolution = '1280x800';

/**
 * The session of the space’s default profile, which is started if there is none. Its id comes from the call's id, so that
 * a second run of the call finds it.
 */
export async function startedSession(
  deps: BrowserToolDeps,
  { turn, toolCallId, signal }: ToolContext,
  desktopSessionId: string | undefined,
): Promise<BrowserSession> {
  const { database, liveComputers, workflows } = deps;
  const { spaceId } = turn;
  const there = await usualSession(database, spaceId);
  if (there !== undefined) {
    if (desktopSessionId !== undefined && there.desktopSessionId !== desktopSessionId) throw elsewhere(there);
    return untilStarted(deps, there, signal);
  }
  const actor = actorOfTurn(turn);
  const profileId = idOfCall('browserProfile', toolCallId);
  const profile = await defaultProfile(deps, { spaceId, profileId }, actor);
  const computerId = (await desktopComputer(deps, spaceId, desktopSessionId)) ?? (await computerOf(database, profile));
  await liveComputers.awake({ spaceId, computerId }, actor);
  await untilSaved(deps, profile.id, signal);
  const sessionId = idOfCall('browserSession', toolCallId);
  const where = { spaceId, computerId, profileId: profile.id, desktopSessionId };
  await createBrowser(deps, { ...where, ...resolutionOf(resolution), sessionId, url: undefined }, actor);
  void workflows.startBrowser({ id: sessionId, spaceId });
  return untilStarted(deps, { id: sessionId, spaceId }, signal);
}

async function desktopComputer(
  { database }: BrowserToolDeps,
  spaceId: string,
  desktopSessionId: string | undefined,
): Promise<string | undefined> {
  if (desktopSessionId === undefined) return undefined;
  const desktop = await findDesktop(database, desktopSessionId);
  if (desktop?.spaceId !== spaceId) throw notFound('desktop session');
  return desktop.computerId;
}

/** Waits until a session that is ending has saved the profile. */
async function untilSaved(
  { database, workflows }: BrowserToolDeps,
  profileId: string,
  signal: AbortSignal,
): Promise<void> {
  const ending = async () => (await liveSessions(database, [profileId])).find(hasEnded);
  const before = await ending();
  if (before === undefined) return;
  void workflows.startBrowser(before);
  await lookUntil(ending, (session) => session === undefined, { signal, ...patience });
}

async function untilStarted(
  { database }: BrowserToolDeps,
  { id, spaceId }: Pick<BrowserSession, 'id' | 'spaceId'>,
  signal: AbortSignal,
): Promise<BrowserSession> {
  return lookUntil(
    () => getBrowser(database, { spaceId, sessionId: id }),
    (session) => session.status !== 'starting' || hasEnded(session),
    { signal, ...patience },
  );
}

function elsewhere({ id }: BrowserSession): DomainError {
  const detail = `The browser is already open, but not on this desktop. Use it without \`desktopSessionId\`, or ask a person to end the session ${id} first.`;
  return new DomainError('conflict', 'BROWSER_ELSEWHERE', detail);
}
