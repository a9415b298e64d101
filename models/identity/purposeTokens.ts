import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { DomainError } from '../../base/errors.ts';
import { keyOfToken, type SigningKeys, signingAlgorithm } from './signingKeys.ts';

const clockToleranceSeconds = 5;
const longestTokenLength = 4_096;

interface Purpose {
  installation: string;
  /** Its type and its audience have this in them: no token for one purpose is ever taken for another, or for a session. */
  name: string;
  /** Claims that each has besides `sub`, `iat` and `exp`. */
  claims?: string[];
  /** Such as `1m`, for tokens that are never older. */
  maxAge?: string;
  /** What a token that does not hold is refused with. */
  refused: () => DomainError;
}

/** Tokens for one purpose of an installation (JWT, EdDSA), which its processes verify with public keys alone. */
export function createPurposeTokens(keys: SigningKeys, { installation, name, claims = [], maxAge, refused }: Purpose) {
  const issuer = `urn:atrium:${installation}`;
  const audience = `urn:atrium:${installation}:${name}`;
  const typ = `atrium-${name}+jwt`;

  return {
    /** `until` is a time, or how long from now. */
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
    /** What `read` makes of the claims; a token that does not hold, or of which it makes nothing, is refused. */
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
        if (error instanceof errors.JOSEError) throw refused();
        throw error;
      }
    },
  };
}
