import { EventEmitter } from 'node:events';
import { DomainError } from '../../base/errors.ts';
import { Desktop } from '../../integrations/desktops/desktop.ts';
import {
  type DesktopRef,
  type DesktopSession,
  endCodeOf,
  endDetailOf,
  findDesktop,
  getDesktop,
} from '../../models/desktops/session.ts';
import { endDesktop } from '../../models/desktops/sessions.ts';
import { failDesktop } from '../../models/desktops/steps.ts';
import type { RouteDeps } from '../frame/deps.ts';

type LookDeps = Pick<RouteDeps, 'database' | 'launcher' | 'liveComputers'>;

/** Tells the open pages of this process, by the session's id, that they should look at their session again. */
export const desktopChanges = new EventEmitter().setMaxListeners(0);

/** A session as it is now: one whose X server has ended says so. Throws 404. */
export async function lookAtDesktop(deps: LookDeps, ref: DesktopRef): Promise<DesktopSession> {
  return asItIs(deps, await getDesktop(deps.database, ref));
}

/** Looks whether a session's X server runs. If its computer cannot be asked now, the session is as its row says. */
export async function asItIs(deps: LookDeps, session: DesktopSession): Promise<DesktopSession> {
  const { database, launcher, liveComputers } = deps;
  const code = endCodeOf(session);
  if (code !== undefined) {
    if (session.endedAt !== null) return session;
    // The session ended with its computer. Its row gets the end now.
    await endDesktop(database, session.id, code);
    return (await findDesktop(database, session.id)) ?? session;
  }
  if (session.status !== 'running') return session;
  try {
    const client = await liveComputers.asIs(session);
    if (await new Desktop(client, session).isAlive()) return session;
  } catch (error) {
    if (error instanceof DomainError) return session;
    throw error;
  }
  const ref = { spaceId: session.spaceId, computerId: session.computerId, sessionId: session.id };
  const latest = await getDesktop(database, ref);
  // The X server may have ended with its computer in the meantime.
  if (endCodeOf(latest) !== undefined) return latest;
  await failDesktop(database, session.id, 'X_SERVER_ENDED');
  void launcher.startDesktop(session);
  return getDesktop(database, ref);
}

/** A session that has not ended. Throws 404, 410 `DESKTOP_ENDED`. */
export async function openDesktop({ database }: Pick<LookDeps, 'database'>, ref: DesktopRef): Promise<DesktopSession> {
  const session = await getDesktop(database, ref);
  const code = endCodeOf(session);
  if (code !== undefined) throw desktopEnded(code);
  return session;
}

/** The X server of a running session. Throws 404, 409 `DESKTOP_STARTING` or `COMPUTER_PAUSED`, 410 `DESKTOP_ENDED`. */
export async function xServerOf(
  deps: LookDeps,
  ref: DesktopRef,
): Promise<{ session: DesktopSession; server: Desktop }> {
  const session = await openDesktop(deps, ref);
  if (session.status === 'starting') {
    throw new DomainError('conflict', 'DESKTOP_STARTING', 'The desktop session is starting. Try again in a moment.');
  }
  return { session, server: new Desktop(await deps.liveComputers.unpaused(session), session) };
}

/** Calls `act` with the X server of a session. If the X server has ended, this notes that the session has ended. */
export async function withXServer<T>(
  deps: LookDeps,
  ref: DesktopRef,
  act: (server: Desktop, session: DesktopSession) => Promise<T>,
): Promise<T> {
  const { session, server } = await xServerOf(deps, ref);
  try {
    return await act(server, session);
  } catch (error) {
    const isOver = error instanceof DomainError && ['X_SERVER_ENDED', 'COMPUTER_NOT_RUNNING'].includes(error.code);
    if (!isOver) throw error;
    const code = endCodeOf(await asItIs(deps, session));
    throw code === undefined ? error : desktopEnded(code);
  }
}

export function desktopEnded(code: string): DomainError {
  return new DomainError('gone', 'DESKTOP_ENDED', `The desktop session has ended. ${endDetailOf(code)}`);
}
