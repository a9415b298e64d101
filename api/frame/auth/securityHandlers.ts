import type { Request } from 'express';
import { DomainError } from '../../../base/errors.ts';
import { apiKeyPrefix } from '../../../models/identity/apiKeyFormat.ts';
import { insufficientScope } from '../../../models/identity/authority.ts';
import { allows } from '../../../models/identity/scopes.ts';
import type { Operation } from '../contract.ts';
import type { Caller } from './caller.ts';
import type { Authenticate } from './passport.ts';

/**
 * The contract's two schemes, both HTTP bearer. The validator tries both. A credential's prefix tells which scheme it
 * belongs to, and the other declines. A refusal is kept on the request, since the validator passes on only its status.
 */
export function createSecurityHandlers(authenticate: Authenticate) {
  async function accept(req: Request, check: () => Promise<Caller>): Promise<boolean> {
    try {
      req.caller = await check();
      return true;
    } catch (error) {
      req.authFailure = error;
      return false;
    }
  }

  return {
    bearerAuth: (req: Request) => {
      if (!isApiKey(req)) return accept(req, () => authenticate('bearerAuth', req));
      if (req.operation?.takesApiKey === false) req.authFailure = sessionRequired();
      return Promise.resolve(false);
    },
    apiKey: (req: Request) => {
      if (!isApiKey(req)) return Promise.resolve(false);
      return accept(req, async () => {
        const caller = await authenticate('apiKey', req);
        requireScopeOf(caller, req.operation);
        return caller;
      });
    },
  };
}

function isApiKey(req: Request): boolean {
  return /^bearer +/i.test(req.headers.authorization ?? '')
    ? (req.headers.authorization ?? '')
        .replace(/^bearer +/i, '')
        .toLowerCase()
        .startsWith(apiKeyPrefix)
    : false;
}

function requireScopeOf(caller: Caller, operation: Operation | undefined): void {
  const needed = operation?.scope;
  if (needed === 'any') return;
  // Keys are refused for an operation without a scope: forgetting the scope must not grant access.
  if (needed !== undefined && allows(caller.scopes, needed)) return;
  throw insufficientScope(needed ?? '*');
}

function sessionRequired(): DomainError {
  return new DomainError('forbidden', 'SESSION_REQUIRED', 'API keys cannot do this. Sign in and use a session token.');
}
