import type { Request } from 'express';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';

/** In whose name the caller's commits are. */
export async function authorOf(
  { identity }: Pick<RouteDeps, 'identity'>,
  req: Request,
): Promise<{ name: string; email: string }> {
  const { name = '', email = '' } = (await identity.users.byId(actorOf(req).userId)) ?? {};
  return { name, email };
}
