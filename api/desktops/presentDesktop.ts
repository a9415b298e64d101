import { type DesktopLink, ownLinksOf } from '../../models/desktops/links.ts';
import { type DesktopSession, endCodeOf, endDetailOf } from '../../models/desktops/session.ts';
import type { AnswerOf } from '../frame/answer.ts';
import { authorityOf, type Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { time } from '../frame/times.ts';

type Deps = Pick<RouteDeps, 'config' | 'database' | 'identity'>;

/** A session for this caller. The address of its page is for this caller alone. */
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

/**
 * The address of a desktop's page for this caller. It works no longer than the caller's own access. Browsers do not
 * send the part after the `#`; only the page itself sends it.
 */
export async function viewAddress(
  { config, identity }: Pick<RouteDeps, 'config' | 'identity'>,
  link: Pick<DesktopLink, 'id' | 'ttlSeconds' | 'expiresAt'>,
  caller: Caller,
): Promise<{ url: string; expiresAt: Date }> {
  const { apiKeyId } = authorityOf(caller);
  const sessionId = caller.via === 'session' ? caller.sessionId : null;
  const expiresAt = link.expiresAt ?? new Date(Date.now() + link.ttlSeconds * 1_000);
  const viewer = { linkId: link.id, userId: caller.userId, apiKeyId, sessionId };
  const token = await identity.desktopTokens.sign(viewer, expiresAt);
  return { url: `${config.ports.desktopOrigin}/#${token}`, expiresAt };
}
