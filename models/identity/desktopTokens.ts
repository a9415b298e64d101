import { errors, jwtVerify, SignJWT } from 'jose';
import { DomainError } from '../errors.ts';
import { keyOfToken, type SigningKeys, signingAlgorithm } from './signingKeys.ts';

// A type and an audience of their own: no session is ever taken for one, and none for a session.
const tokenType = 'atrium-desktop+jwt';
const clockToleranceSeconds = 5;
const longestTokenLength = 4_096;

/** Whoever was given a link, with the credential by which they asked for it. */
export interface DesktopViewer {
  linkId: string;
  userId: string;
  apiKeyId: string | null;
  sessionId: string | null;
}

export type DesktopTokens = ReturnType<typeof createDesktopTokens>;

/** What is in the address of a desktop's page (JWT, EdDSA): a link to it, and who was given that. */
export function createDesktopTokens(keys: SigningKeys, installation: string) {
  const issuer = `urn:atrium:${installation}`;
  const audience = `urn:atrium:${installation}:desktop`;

  return {
    async sign({ linkId, userId, apiKeyId, sessionId }: DesktopViewer, expiresAt: Date): Promise<string> {
      const { id, privateKey } = await keys.current();
      return new SignJWT({ user: userId, key: apiKeyId, session: sessionId })
        .setProtectedHeader({ alg: signingAlgorithm, typ: tokenType, kid: id })
        .setSubject(linkId)
        .setIssuer(issuer)
        .setAudience(audience)
        .setIssuedAt()
        .setExpirationTime(expiresAt)
        .sign(privateKey);
    },
    /** Throws 401 `INVALID_TOKEN`, also where it has expired. */
    async verify(token: string): Promise<DesktopViewer> {
      if (token.length > longestTokenLength) throw invalid();
      try {
        const { payload } = await jwtVerify(token, keyOfToken(keys), {
          algorithms: [signingAlgorithm],
          issuer,
          audience,
          typ: tokenType,
          requiredClaims: ['sub', 'iat', 'exp', 'user'],
          clockTolerance: clockToleranceSeconds,
        });
        const { sub, user, key, session } = payload as Record<string, unknown>;
        if (typeof sub !== 'string' || typeof user !== 'string') throw new errors.JWTInvalid();
        return { linkId: sub, userId: user, apiKeyId: textOrNull(key), sessionId: textOrNull(session) };
      } catch (error) {
        if (error instanceof errors.JOSEError) throw invalid();
        throw error;
      }
    },
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function invalid(): DomainError {
  return new DomainError('unauthenticated', 'INVALID_TOKEN', 'This address does not hold, or not any more.');
}
