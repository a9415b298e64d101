import { DomainError } from '../../base/errors.ts';
import { createPurposeTokens } from './purposeTokens.ts';
import type { SigningKeys } from './signingKeys.ts';

/** The user who was given a link, with the credential that asked for it. */
export interface DesktopViewer {
  linkId: string;
  userId: string;
  apiKeyId: string | null;
  sessionId: string | null;
}

/** The token in the address of a desktop's page. It names a link and the user who was given it. */
export function createDesktopTokens(keys: SigningKeys, installation: string) {
  const tokens = createPurposeTokens(keys, { installation, name: 'desktop', claims: ['user'], refused: invalid });
  return {
    sign: ({ linkId, userId, apiKeyId, sessionId }: DesktopViewer, expiresAt: Date): Promise<string> =>
      tokens.sign(linkId, expiresAt, { user: userId, key: apiKeyId, session: sessionId }),
    /** Throws 401 `INVALID_TOKEN`, also for an expired token. */
    verify: (token: string): Promise<DesktopViewer> =>
      tokens.verify(token, ({ sub, user, key, session }) =>
        typeof user === 'string'
          ? { linkId: sub, userId: user, apiKeyId: textOrNull(key), sessionId: textOrNull(session) }
          : undefined,
      ),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function invalid(): DomainError {
  return new DomainError('unauthenticated', 'INVALID_TOKEN', 'This address does not hold, or not any more.');
}
