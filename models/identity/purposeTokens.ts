import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { DomainError } from '../../base/errors.ts';
import { keyOfToken, type SigningKeys, signingAlgorithm } from './signingKeys.ts';

const clockToleranceSeconds = 5;
/** Longer tokens are not read. */
export const longestTokenLength = 4_096;

interface Purpose {
  installation: string;
  /** Part of a token's type and audience, so that no token for one purpose passes for another, or for a session. */
  name: string;
  /** Required claims besides `sub`, `iat` and `exp`. */
  claims?: string[];
  /** The maximum age of a token, such as `1m`. */
  maxAge?: string;
  /** The type in a token's header. Default: one with the purpose's name. */
  typ?: string;
  /** The error for an invalid token. */
  refused: () => DomainError;
  /** The error for a token that has expired. Default: `refused`. */
  expired?: () => DomainError;
}

/** Tokens for one purpose of an installation (JWT, EdDSA). Its processes verify them with public keys alone. */
export function createPurposeTokens(keys: SigningKeys, purpose: Purpose) {
  const { installation, name, claims = [], maxAge, typ = `atrium-${name}+jwt`, refused, expired = refused } = purpose;
  const issuer = `urn:atrium:${installation}`;
  const audience = `urn:atrium:${installation}:${name}`;

  return {
    /** `until` is a time, or a duration from now. */
    async sign(subject: string, until: Date | string, payload: JWTPayload = {}): Promise<string> {
      const { id, privateKey } = await keys.current();
      return new SignJWT(payload)
        .setProtectedHeader({ alg: signingAlgorithm, typ, kid: id })
        .setSubject(subject)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime(until)
        .sign(privateKey);
    },
    /** What `read` makes of the claims. Refuses an invalid token, and one for which `read` returns undefined. */
    async verify<T>(token: string, read: (payload: JWTPayload & { sub: string }) => T | undefined): Promise<T> {
      if (token.length > longestTokenLength) throw refused();
      try {
        const { payload } = await jwtVerify(token, keyOfToken(keys), {
          algorithms: [signingAlgorithm],
          issuer,
          audience,
          typ,
          requiredClaims: ['sub', 'iat', 'exp', ...claims],
          clockTolerance: clockToleranceSeconds,
          ...(maxAge !== undefined && { maxTokenAge: maxAge }),
        });
        const { sub } = payload;
        const found = typeof sub === 'string' ? read({ ...payload, sub }) : undefined;
        if (found === undefined) throw new errors.JWTInvalid();
        return found;
      } catch (error) {
        if (error instanceof errors.JWTExpired) throw expired();
        if (error instanceof errors.JOSEError) throw refused();
        throw error;
      }
    },
  };
}
