import { DomainError } from '../../base/errors.ts';
import { createPurposeTokens } from './purposeTokens.ts';
import type { SigningKeys } from './signingKeys.ts';

const lifetime = '1m';

export type HostTokens = ReturnType<typeof createHostTokens>;

/**
 * Tokens with which the processes of an installation use one computer at the address of its host. They live a minute
 * and are made for each request.
 */
export function createHostTokens(keys: SigningKeys, installation: string) {
  const tokens = createPurposeTokens(keys, { installation, name: 'host', maxAge: lifetime, refused: invalidHostToken });
  return {
    sign: (computerId: string): Promise<string> => tokens.sign(computerId, lifetime),
    /** The computer that a token is for. Throws 401 `INVALID_TOKEN`. */
    verify: (token: string): Promise<string> => tokens.verify(token, ({ sub }) => sub),
  };
}

function invalidHostToken(): DomainError {
  return new DomainError('unauthenticated', 'INVALID_TOKEN', 'The token is not valid for this computer.');
}
