import { DomainError } from '../../base/errors.ts';
import { isAtLeast } from './roles.ts';
import { allows, type Scope } from './scopes.ts';
import type { Role } from './tables.ts';

/**
 * What work may do that goes on after its request: never more than the credential that asked for it. A turn keeps it in
 * its row. Whatever else is made to run later (an automation, the run of a webhook, a replay) keeps it as well, and
 * hands it on as it is.
 */
export interface Authority {
  /** Of the API key that asked. Null is a person signed in: everything that their role allows. */
  scopes: readonly string[] | null;
  apiKeyId: string | null;
}

/** How much of it is left when the work is done. */
export interface Standing {
  /** Its user's current role in its space; undefined when they are no longer a member. */
  role: Role | undefined;
  /** False when it was asked for with an API key that is revoked or expired. */
  keyHolds: boolean;
}

interface Asked {
  members: { access(spaceId: string, userId: string): Promise<{ role: Role } | undefined> };
  keys: { isValid(keyId: string): Promise<boolean> };
}

/** Whether the work, or the caller, has this scope. Their role is checked separately. */
export function may({ scopes }: Pick<Authority, 'scopes'>, needed: Scope): boolean {
  return scopes === null || allows(scopes, needed);
}

/**
 * The first of these scopes that `by` lacks (null means all scopes); undefined when none. Continuing work, or approving
 * a part of it, must not give more rights than one's own.
 */
export function lackingOf(by: Pick<Authority, 'scopes'>, scopes: readonly string[] | null): string | undefined {
  return (scopes ?? ['*']).find((scope) => !may(by, scope as Scope));
}

/**
 * Checks what the work's authority rests on: its user's membership, and its key. Membership is at most a second old.
 */
export async function standingOf(
  { members, keys }: Asked,
  { spaceId, userId, apiKeyId }: { spaceId: string; userId: string; apiKeyId: string | null },
): Promise<Standing> {
  const [access, keyHolds] = await Promise.all([
    members.access(spaceId, userId),
    apiKeyId === null ? true : keys.isValid(apiKeyId),
  ]);
  return { role: access?.role, keyHolds };
}

/** By whom and with what a link was asked for: with an API key, or in a session. */
export interface LinkMaker {
  spaceId: string;
  userId: string;
  apiKeyId: string | null;
  sessionId: string | null;
}

/**
 * The one rule for links: whoever asked for one still has this role, with a key that holds, in a session that nobody has
 * ended. Whatever a link has opened is asked again every few seconds.
 */
export async function mayUseLink(
  identity: Asked & { sessions: { wasEnded(sessionId: string): Promise<boolean> } },
  { sessionId, ...by }: LinkMaker,
  least: Role,
): Promise<boolean> {
  const [{ role, keyHolds }, hasLeft] = await Promise.all([
    standingOf(identity, by),
    sessionId === null ? false : identity.sessions.wasEnded(sessionId),
  ]);
  return !hasLeft && keyHolds && role !== undefined && isAtLeast(role, least);
}

/** 403 `INSUFFICIENT_SCOPE`. */
export function insufficientScope(needed: string, why = ''): DomainError {
  return new DomainError('forbidden', 'INSUFFICIENT_SCOPE', `This API key lacks the scope "${needed}"${why}.`);
}
