import { DomainError } from '../../base/errors.ts';
import { createPurposeTokens } from './purposeTokens.ts';
import type { SigningKeys } from './signingKeys.ts';

/** Whoever was given a link, with the credential by which they asked for it. */
export interface DesktopViewer {
  linkId: string;
  userId: string;
  apiKeyId: string | null;
  sessionId: string | null;
}

export type DesktopTokens = ReturnType<typeof createDesktopTokens>;

/** What is in the address of a desktop's page: a link to it, and who was given that. */
export function createDesktopTokens(keys: SigningKeys, installation: string) {
  const tokens = createPurposeTokens(keys, { installation, name: 'desktop', claims: ['user'], refused: invalid });
  return {
    sign: ({ linkId, userId, apiKeyId, sessionId }: DesktopViewer, expiresAt: Date): Promise<string> =>
      tokens.sign(linkId, expiresAt, { user: userId, key: apiKeyId, session: sessionId }),
    /** Throws 401 `INVALID_TOKEN`, also where it has expired. */
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
