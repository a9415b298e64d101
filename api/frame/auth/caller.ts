import type { Request } from 'express';
import { DomainError } from '../../../models/errors.ts';

/** Who makes the request, and with what. */
export type Caller =
  | { userId: string; via: 'session'; sessionId: string; expiresAt: Date; scopes: readonly string[] }
  | { userId: string; via: 'apiKey'; keyId: string; expiresAt: Date | null; scopes: readonly string[] };

/** The caller of an operation that needs one. */
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
