import type { Request } from 'express';
import { Passport } from 'passport';
import { Strategy as BearerStrategy, type VerifyFunction } from 'passport-http-bearer';
import type { Identity } from '../../../models/identity/index.ts';
import { type Caller, notAuthenticated } from './caller.ts';

export type Scheme = 'bearerAuth' | 'apiKey';

/** Checks the credential of a request by one of the contract's two schemes. */
export type Authenticate = (scheme: Scheme, req: Request) => Promise<Caller>;

/** Passport with a bearer strategy for each scheme. A refused credential rejects with a DomainError. */
export function createAuthenticate(identity: Identity): Authenticate {
  const passport = new Passport();
  passport.use(
    'bearerAuth',
    bearer((token) => callerOfSession(identity, token)),
  );
  passport.use(
    'apiKey',
    bearer((token) => callerOfKey(identity, token)),
  );
  return (scheme, req) =>
    new Promise((resolve, reject) => {
      const finish = (error: unknown, caller?: Caller | false | null) => {
        if (error) reject(error);
        else if (caller) resolve(caller);
        else reject(notAuthenticated());
      };
      passport.authenticate(scheme, { session: false }, finish)(req, req.res, reject);
    });
}

function bearer(check: (token: string) => Promise<Caller>): BearerStrategy<VerifyFunction> {
  return new BearerStrategy((token, done) => {
    check(token).then(
      (caller) => done(null, caller),
      (error: unknown) => done(error),
    );
  });
}

async function callerOfSession(identity: Identity, token: string): Promise<Caller> {
  const { userId, sessionId, expiresAtMs } = await identity.sessions.authenticate(token);
  return { userId, via: 'session', sessionId, expiresAt: new Date(expiresAtMs), scopes: ['*'] };
}

async function callerOfKey(identity: Identity, key: string): Promise<Caller> {
  const { userId, keyId, scopes, expiresAt } = await identity.keys.authenticate(key);
  return { userId, via: 'apiKey', keyId, expiresAt, scopes };
}
