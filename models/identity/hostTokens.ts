import { errors, jwtVerify, SignJWT } from 'jose';
import { DomainError } from '../errors.ts';
import { keyOfToken, type SigningKeys, signingAlgorithm } from './signingKeys.ts';

// A type and an audience of their own: no session is ever taken for one, and none for a session.
const tokenType = 'atrium-host+jwt';
const lifetime = '1m';
const clockToleranceSeconds = 5;
const longestTokenLength = 4_096;

export type HostTokens = ReturnType<typeof createHostTokens>;

/**
 * Tokens by which the processes of an installation use one computer at the address of its host (JWT, EdDSA). They live a
 * minute, and are made for each request. A host verifies them with public keys alone.
 */
export function createHostTokens(keys: SigningKeys, installation: string) {
  const issuer = `urn:atrium:${installation}`;
  const audience = `urn:atrium:${installation}:host`;

  return {
    async sign(computerId: string): Promise<string> {
      const { id, privateKey } = await keys.current();
      return new SignJWT()
        .setProtectedHeader({ alg: signingAlgorithm, typ: tokenType, kid: id })
        .setSubject(computerId)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime(lifetime)
        .sign(privateKey);
    },
    /** The computer that a token is for. Throws 401 `INVALID_TOKEN`. */
    async verify(token: string): Promise<string> {
      if (token.length > longestTokenLength) throw invalidHostToken();
      try {
        const { payload } = await jwtVerify(token, keyOfToken(keys), {
          algorithms: [signingAlgorithm],
          issuer,
          audience,
          typ: tokenType,
          requiredClaims: ['sub', 'iat', 'exp'],
          clockTolerance: clockToleranceSeconds,
          maxTokenAge: lifetime,
        });
        if (typeof payload.sub !== 'string') throw new errors.JWTInvalid();
        return payload.sub;
      } catch (error) {
        if (error instanceof errors.JOSEError) throw invalidHostToken();
        throw error;
      }
    },
  };
}

function invalidHostToken(): DomainError {
  return new DomainError('unauthenticated', 'INVALID_TOKEN', 'The token is not valid for this computer.');
}
