import { hash } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import { DomainError } from '../../base/errors.ts';
import { keepBounded } from '../../base/freshCache.ts';
import { createPurposeTokens, longestTokenLength } from './purposeTokens.ts';
import { type SigningKeys, signingAlgorithm } from './signingKeys.ts';

/** The claims of a session token whose signature has been checked. */
export interface SessionClaims {
  userId: string;
  sessionId: string;
  expiresAtMs: number;
}

const cachedTokens = 10_000;

/**
 * Signs and verifies session tokens (JWT, EdDSA). A verified token is remembered by its hash, so a busy client costs a
 * hash instead of a signature check each time. Whether the *session* is still valid is checked elsewhere.
 */
export function createSessionTokens(keys: SigningKeys, installation: string) {
  const tokens = createPurposeTokens(keys, {
    installation,
    name: 'api',
    // RFC 9068's type. A token signed for another purpose is thus never taken for a session.
    typ: 'at+jwt',
    claims: ['sid'],
    maxAge: '12h',
    refused: invalidToken,
    expired: tokenExpired,
  });
  const verified = new Map<string, SessionClaims>();

  return {
    sign: ({ userId, sessionId, expiresAtMs }: SessionClaims): Promise<string> =>
      tokens.sign(userId, new Date(expiresAtMs), { sid: sessionId, nbf: Math.floor(Date.now() / 1_000) }),
    /** Throws 401 `INVALID_TOKEN` or `TOKEN_EXPIRED`. */
    async verify(token: string): Promise<SessionClaims> {
      if (token.length > longestTokenLength) throw invalidToken();
      const id = hash('sha256', token, 'base64');
      const known = verified.get(id);
      if (known !== undefined && known.expiresAtMs > Date.now()) return known;
      verified.delete(id);
      if (!looksLikeOurs(token)) throw foreignToken();
      const claims = await tokens.verify(token, ({ sub, sid, exp }) =>
        typeof sid === 'string' && exp !== undefined
          ? { userId: sub, sessionId: sid, expiresAtMs: exp * 1_000 }
          : undefined,
      );
      keepBounded(verified, cachedTokens, id, claims);
      return claims;
    },
  };
}

/** Refuses `alg: none`, HMACs and foreign tokens before anything is looked up. */
function looksLikeOurs(token: string): boolean {
  try {
    return decodeProtectedHeader(token).alg === signingAlgorithm;
  } catch {
    return false;
  }
}

export function invalidToken(): DomainError {
  return new DomainError('unauthenticated', 'INVALID_TOKEN', 'The session token is not valid. Sign in again.');
}

/** The token may also have been meant as an API key. */
function foreignToken(): DomainError {
  const detail =
    'This is neither a session token nor an API key of Atrium, which begins with atr_. ' +
    'Sign in again, or make a key by: npm run -s atrium -- key create.';
  return new DomainError('unauthenticated', 'INVALID_TOKEN', detail);
}

export function tokenExpired(): DomainError {
  return new DomainError('unauthenticated', 'TOKEN_EXPIRED', 'The session has ended. Sign in again.');
}
