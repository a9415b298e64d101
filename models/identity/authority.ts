import { DomainError } from '../../base/errors.ts';
import { isAtLeast } from './roles.ts';
import { allows, type Scope } from './scopes.ts';
import type { Role } from './tables.ts';

/**
 * What work that outlives its request may do: never more than the credential that asked for it. A turn keeps it in its
 * row. Other work that runs later (an automation, the run of a webhook, a replay) keeps it as well and passes it on
 * unchanged.
 */
export interface Authority {
  /** The scopes of the API key that asked. Null for a signed-in person: everything that their role allows. */
  scopes: readonly string[] | null;
  apiKeyId: string | null;
}

/** How much of the authority is left when the work runs. */
export interface Standing {
  /** The user's current role in the space. Undefined when they are no longer a member. */
  role: Role | undefined;
  /** False when the API key that asked is revoked or expired. */
  keyHolds: boolean;
}

interface Asked {
  members: { access(spaceId: string, userId: string): Promise<{ role: Role } | undefined> };
  keys: { isValid(keyId: string): Promise<boolean> };
}

/** Whether the work or the caller has this scope. The role is checked separately. */
export function may({ scopes }: Pick<Authority, 'scopes'>, needed: Scope): boolean {
  return scopes === null || allows(scopes, needed);
}

/**
 * The first of these scopes that `by` lacks (null means all scopes). Undefined when none is missing. Continuing work,
 * or approving a part of it, must not give more rights than one's own.
 */
export function lackingOf(by: Pick<Authority, 'scopes'>, scopes: readonly string[] | null): string | undefined {
  return (scopes ?? ['*']).find((scope) => !may(by, scope as Scope));
}

/** Checks what the work's authority rests on: the user's membership and the key. Membership is at most a second old. */
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

/** Who asked for a link, and with what: an API key or a session. */
export interface LinkMaker {
  spaceId: string;
  userId: string;
  apiKeyId: string | null;
  sessionId: string | null;
}

/**
 * The one rule for links: the user who asked for it still has this role, the API key is valid, and the session has not
 * been ended. Connections that a link has opened are checked again every few seconds.
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
