import type { Request } from 'express';
import type { RouteDeps } from '../deps.ts';
import { actorOf } from './actor.ts';

/** The author of the caller's commits. */
export async function authorOf(
  { identity }: Pick<RouteDeps, 'identity'>,
  req: Request,
): Promise<{ name: string; email: string }> {
  const { name = '', email = '' } = (await identity.users.byId(actorOf(req).userId)) ?? {};
  return { name, email };
}
