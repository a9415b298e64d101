import { notFound } from '../../../base/errors.ts';
import { type BrowserLink, findBrowserLink } from '../../../models/browsers/links.ts';
import { mayUseLink } from '../../../models/identity/authority.ts';
import type { RouteDeps } from '../../frame/deps.ts';

export type LinkDeps = Pick<RouteDeps, 'database' | 'identity'>;

/** Whom a link lets in now: nobody, where it is over; and nobody, where whoever made it may no longer do this. */
export async function standingOfLink(
  { database, identity }: LinkDeps,
  token: string,
): Promise<{ link: BrowserLink | undefined; isAllowed: boolean }> {
  const link = await findBrowserLink(database, token);
  if (link === undefined) return { link, isAllowed: false };
  const { spaceId, createdBy: userId, apiKeyId, loginSessionId: sessionId } = link;
  return { link, isAllowed: await mayUseLink(identity, { spaceId, userId, apiKeyId, sessionId }, 'editor') };
}

/** Throws 404: nobody is told which it is. */
export async function admit(deps: LinkDeps, token: string): Promise<BrowserLink> {
  const { link, isAllowed } = await standingOfLink(deps, token);
  if (link === undefined || !isAllowed) throw notFound('link');
  return link;
}
