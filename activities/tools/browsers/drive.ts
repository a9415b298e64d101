import type { Turn } from '../../../models/chat/turn.ts';
import { inControl, oneByOne } from '../desktops/control.ts';
import { beforehand, type ToolContext } from '../tool.ts';
import { type BrowserInput, type BrowserToolDeps, type OpenBrowser, reach, sessionFor, whileItLives } from './place.ts';

/** Common to all tools that act on a browser. */
export const act = {
  access: 'act',
  role: 'editor',
  scope: 'computers:write',
  timeoutMs: 120_000,
  // A click before the crash must not be made again.
  afterCrash: 'never',
} as const;

/** Common to all tools that look at a browser. */
export const look = {
  access: 'read',
  role: 'viewer',
  scope: 'computers:read',
  timeoutMs: 120_000,
  afterCrash: 'again',
} as const;

type Work<T> = (open: OpenBrowser) => Promise<T>;

/** Looks at a call's browser. */
export async function looksAt<T>(deps: BrowserToolDeps, turn: Turn, input: BrowserInput, work: Work<T>): Promise<T> {
  const open = await reach(deps, turn, await sessionFor(deps, turn, input), 'looks');
  return whileItLives(deps, open, () => work(open));
}

/** Acts on a call's browser once the earlier calls are done. */
export async function drives<T>(
  deps: BrowserToolDeps,
  context: ToolContext,
  input: BrowserInput,
  work: Work<T>,
): Promise<T> {
  const { turn } = context;
  const open = await beforehand(sessionFor(deps, turn, input).then((session) => reach(deps, turn, session, 'acts')));
  return whileItLives(deps, open, () => asController(deps, context, open, () => work(open)));
}

/** If a desktop shows the browser, only the one in control of the desktop may act on it. */
export function asController<T>(
  { database }: Pick<BrowserToolDeps, 'database'>,
  context: ToolContext,
  { session: { id, desktopSessionId } }: OpenBrowser,
  work: () => Promise<T>,
): Promise<T> {
  if (desktopSessionId === null) return oneByOne(`${context.turn.id} ${id}`, work);
  const screen = { desktopId: desktopSessionId, surface: 'browser', sessionId: id } as const;
  return inControl(database, screen, context, () => work());
}
