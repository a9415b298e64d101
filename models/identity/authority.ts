import { DomainError } from '../errors.ts';
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
  /** Who its user is in its space now; undefined when no member any more. */
  role: Role | undefined;
  /** False when it was asked for with an API key that is revoked or expired. */
  keyHolds: boolean;
}

interface Asked {
  members: { access(spaceId: string, userId: string): Promise<{ role: Role } | undefined> };
  keys: { isValid(keyId: string): Promise<boolean> };
}

/** Whether the work, or the caller, may do what takes this scope. What their role allows is another question. */
export function may({ scopes }: Pick<Authority, 'scopes'>, needed: Scope): boolean {
  return scopes === null || allows(scopes, needed);
}

/**
 * What `by` lacks of these scopes (null are all there are); undefined when nothing. Whoever takes work further, or
 * allows a part of it, must not get more done so than by themselves.
 */
export function lackingOf(by: Pick<Authority, 'scopes'>, scopes: readonly string[] | null): string | undefined {
  return (scopes ?? ['*']).find((scope) => !may(by, scope as Scope));
}

/** Looks at what the work rests on: its user's membership, and its key. Membership is at most a second old. */
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

/** 403 `INSUFFICIENT_SCOPE`. */
export function insufficientScope(needed: string, why = ''): DomainError {
  return new DomainError('forbidden', 'INSUFFICIENT_SCOPE', `This API key lacks the scope "${needed}"${why}.`);
}
