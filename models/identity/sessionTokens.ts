import { hash } from 'node:crypto';
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose';
import { DomainError } from '../../base/errors.ts';
import { keyOfToken, type SigningKeys, signingAlgorithm } from './signingKeys.ts';

/** The claims of a session token whose signature has been checked. */
export interface SessionClaims {
  userId: string;
  sessionId: string;
  expiresAtMs: number;
}

// RFC 9068's type. A token signed for another purpose is thus never taken for a session.
const tokenType = 'at+jwt';
const clockToleranceSeconds = 5;
const cachedTokens = 10_000;
const longestTokenLength = 4_096;

/**
 * Signs and verifies session tokens (JWT, EdDSA). A verified token is remembered by its hash, so a busy client costs a
 * hash instead of a signature check each time. Whether the *session* is still valid is checked elsewhere.
 */
export function createSessionTokens(keys: SigningKeys, installation: string) {
  const issuer = `urn:atrium:${installation}`;
  const audience = `urn:atrium:${installation}:api`;
  const verified = new Map<string, SessionClaims>();

  async function verifySlowly(token: string): Promise<SessionClaims> {
    try {
      const { payload } = await jwtVerify(token, keyOfToken(keys), {
        algorithms: [signingAlgorithm],
        issuer,
        audience,
        typ: tokenType,
        requiredClaims: ['sub', 'sid', 'iat', 'exp'],
        clockTolerance: clockToleranceSeconds,
        maxTokenAge: '12h',
      });
      const { sub, sid, exp } = payload;
      if (typeof sub !== 'string' || typeof sid !== 'string' || exp === undefined) throw new errors.JWTInvalid();
      return { userId: sub, sessionId: sid, expiresAtMs: exp * 1_000 };
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw tokenExpired();
      if (error instanceof errors.JOSEError) throw invalidToken();
      throw error;
    }
  }

  return {
    async sign(claims: SessionClaims): Promise<string> {
      const { id, privateKey } = await keys.current();
      const nowSeconds = Math.floor(Date.now() / 1_000);
      return new SignJWT({ sid: claims.sessionId })
        .setProtectedHeader({ alg: signingAlgorithm, typ: tokenType, kid: id })
        .setSubject(claims.userId)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt(nowSeconds)
        .setNotBefore(nowSeconds)
        .setExpirationTime(Math.floor(claims.expiresAtMs / 1_000))
        .sign(privateKey);
    },
    /** Throws 401 `INVALID_TOKEN` or `TOKEN_EXPIRED`. */
    async verify(token: string): Promise<SessionClaims> {
      if (token.length > longestTokenLength) throw invalidToken();
      const id = hash('sha256', token, 'base64');
      const known = verified.get(id);
      if (known !== undefined && known.expiresAtMs > Date.now()) return known;
      verified.delete(id);
      if (!looksLikeOurs(token)) throw foreignToken();
      const claims = await verifySlowly(token);
      if (verified.size >= cachedTokens) {
        const oldest = verified.keys().next();
        if (!oldest.done) verified.delete(oldest.value);
      }
      verified.set(id, claims);
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
    'Sign in again, or make a key, such as by: atrium key create.';
  return new DomainError('unauthenticated', 'INVALID_TOKEN', detail);
}

export function tokenExpired(): DomainError {
  return new DomainError('unauthenticated', 'TOKEN_EXPIRED', 'The session has ended. Sign in again.');
}
