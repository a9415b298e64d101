import type { Request } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { type Authority, insufficientScope, may } from '../../../models/identity/authority.ts';
import type { Scope } from '../../../models/identity/scopes.ts';

/** Who makes the request, and with which credential. */
export type Caller =
  | { userId: string; via: 'session'; sessionId: string; expiresAt: Date; scopes: readonly string[] }
  | { userId: string; via: 'apiKey'; keyId: string; expiresAt: Date | null; scopes: readonly string[] };

/** The authority of work that continues after the caller's request. */
export function authorityOf(caller: Caller): Authority {
  return caller.via === 'session'
    ? { scopes: null, apiKeyId: null }
    : { scopes: caller.scopes, apiKeyId: caller.keyId };
}

/** The authority recorded with a change of what an app may run later. It comes from no turn. */
export function changerOf(caller: Caller): Authority & { turnId: null } {
  return { ...authorityOf(caller), turnId: null };
}

/** Throws 403 `INSUFFICIENT_SCOPE`. For effects of an operation that the operation's own scope does not cover. */
export function requireScope(caller: Caller, needed: Scope, why?: string): void {
  if (!may(authorityOf(caller), needed)) throw insufficientScope(needed, why);
}

/** The caller of an operation that requires one. Throws 401 when there is none. */
export function callerOf(req: Request): Caller {
  if (req.caller === undefined) throw notAuthenticated();
  return req.caller;
}

export function notAuthenticated(): DomainError {
  return new DomainError(
    'unauthenticated',
    'NOT_AUTHENTICATED',
    'Send "Authorization: Bearer" with a session token or an API key.',
  );
}
