import type { DesktopLink } from '../../models/desktops/links.ts';
import { authorityOf, type Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';

/**
 * The address of a desktop's page, for this caller: whoever opens it stays no longer than the caller may do this. What is
 * after the `#` is sent to nobody but by the page itself.
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
