import { DomainError, notFound } from '../../../base/errors.ts';
import type { LiveComputers } from '../../../integrations/computers/liveComputers.ts';
import { Desktop } from '../../../integrations/desktops/desktop.ts';
import { onDisplay, shownSize } from '../../../integrations/desktops/picture.ts';
import type { Size } from '../../../integrations/desktops/rfb/rfbClient.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { defaultComputer } from '../../../models/computers/defaultComputer.ts';
import type { Database } from '../../../models/database/database.ts';
import {
  type DesktopSession,
  endCodeOf,
  endDetailOf,
  findDesktop,
  newestOpenDesktop,
} from '../../../models/desktops/session.ts';
import type { CommonDeps } from '../../deps.ts';

export interface DesktopToolDeps extends Pick<CommonDeps, 'workflows'> {
  database: Database;
  liveComputers: LiveComputers;
}

export interface DesktopInput {
  sessionId?: string;
  computerId?: string;
}

const id = { type: 'string', minLength: 1, maxLength: 80 };

export const desktopProperties = {
  sessionId: { ...id, description: 'The session id of the desktop. Default: the newest desktop of the computer.' },
  computerId: { ...id, description: 'The id of a computer of the space. Default: the space’s default computer.' },
};

/** A call's desktop, in the turn’s own space. Looking wakes no computer. */
export async function desktopFor(
  deps: DesktopToolDeps,
  turn: Turn,
  input: DesktopInput,
): Promise<{ session: DesktopSession; server: Desktop }> {
  const session = await sessionFor(deps, turn, input);
  const code = endCodeOf(session);
  if (code !== undefined) {
    throw new DomainError('gone', 'DESKTOP_ENDED', `The desktop ${session.id} has ended. ${endDetailOf(code)}`);
  }
  if (session.status === 'starting') {
    throw new DomainError('conflict', 'DESKTOP_STARTING', 'The desktop is starting. Try again in a moment.');
  }
  return { session, server: new Desktop(await deps.liveComputers.unpaused(session), session) };
}

async function sessionFor({ database }: DesktopToolDeps, turn: Turn, input: DesktopInput): Promise<DesktopSession> {
  const { spaceId } = turn;
  if (input.sessionId !== undefined) {
    const session = await findDesktop(database, input.sessionId);
    if (session?.spaceId !== spaceId) throw notFound('desktop session');
    return session;
  }
  const computerId = input.computerId ?? (await defaultComputer(database, spaceId)).id;
  const session = await newestOpenDesktop(database, computerId);
  if (session?.spaceId !== spaceId) {
    throw new DomainError('notFound', 'DESKTOP_MISSING', 'This computer has no desktop. desktop_start starts one.');
  }
  return session;
}

/** Maps a point of the model's picture to a display of this size. Throws 422 for a point outside of it. */
export function pointOn(display: Size, { x, y }: { x: number; y: number }): { x: number; y: number } {
  const { width, height } = shownSize(display);
  if (x < width && y < height) return onDisplay({ x, y }, display);
  const detail = `(${x}, ${y}) is outside the screen. Its picture is ${width} pixels wide and ${height} pixels high. Take a new screenshot.`;
  throw new DomainError('unprocessable', 'POINT_OUTSIDE', detail);
}
