import type { DesktopLink } from '../../models/desktops/links.ts';
import { ownLinksOf } from '../../models/desktops/links.ts';
import { type DesktopSession, endCodeOf, endDetailOf } from '../../models/desktops/session.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { time } from '../frame/times.ts';
import { viewAddress } from './viewUrl.ts';

type Deps = Pick<RouteDeps, 'config' | 'database' | 'identity'>;

/** A session for this caller, whom its address of the page is for. */
export async function presentDesktop(deps: Deps, session: DesktopSession, caller: Caller) {
  return (await presentDesktops(deps, [session], caller))[0] as AnswerOf<'getDesktopSession'>;
}

export async function presentDesktops(deps: Deps, sessions: DesktopSession[], caller: Caller) {
  const open = sessions.filter((session) => endCodeOf(session) === undefined).map(({ id }) => id);
  const links = deps.config.ports.isReachable ? await ownLinksOf(deps.database, open) : [];
  const addresses = new Map(
    await Promise.all(links.map(async (link) => [link.sessionId, await addressOf(link)] as const)),
  );
  return sessions.map((session) => ({ ...present(session), ...(addresses.get(session.id) ?? unseen) }));

  async function addressOf(link: DesktopLink) {
    const { url, expiresAt } = await viewAddress(deps, link, caller);
    return { linkId: link.id, viewUrl: url, expiresAt: time(expiresAt) };
  }
}

const unseen = { linkId: null, viewUrl: null, expiresAt: null };

function present(session: DesktopSession) {
  const { id, spaceId, computerId, width, height, display, createdBy, createdAt, endedAt, recordingId } = session;
  const code = endCodeOf(session);
  return {
    id,
    spaceId,
    computerId,
    status: statusOf(session),
    resolution: `${width}x${height}`,
    display: `:${display}`,
    recordingId,
    end: code === undefined ? null : { code, detail: endDetailOf(code) },
    createdBy,
    createdAt: time(createdAt),
    endedAt: endedAt === null ? null : time(endedAt),
  };
}

function statusOf(session: DesktopSession): 'starting' | 'running' | 'ended' {
  if (endCodeOf(session) !== undefined) return 'ended';
  return session.status === 'starting' ? 'starting' : 'running';
}
