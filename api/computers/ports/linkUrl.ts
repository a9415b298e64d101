import type { PortLink } from '../../../models/computers/portLink.ts';
import { authorityOf, type Caller } from '../../frame/auth/caller.ts';
import type { RouteDeps } from '../../frame/deps.ts';
import { openPath } from './hosts.ts';

/** An address that lets one browser in by a link, once. Throws 410 `PORT_LINK_ENDED`, 422 `TOO_MANY_VISITORS`. */
export async function linkUrl(
  { config, portLinks }: Pick<RouteDeps, 'config' | 'portLinks'>,
  link: PortLink,
  caller: Caller,
): Promise<string> {
  const { apiKeyId } = authorityOf(caller);
  const sessionId = caller.via === 'session' ? caller.sessionId : null;
  const token = await portLinks.newToken(link, { userId: caller.userId, apiKeyId, sessionId });
  return `${config.ports.originOf(link.label)}${openPath}?token=${token}`;
}
