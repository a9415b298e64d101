import { createHmac, timingSafeEqual } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';
import type { Config } from '../../config/index.ts';
import { hostingError } from './failures.ts';
import { createGitHub } from './github.ts';
import type { GitHostingProvider } from './provider.ts';

/** The path below the public address to which the provider sends people back. */
export const connectedPath = 'git/github/callback';

/** This installation's git hosting provider, and the verification of its notifications. */
export interface GitHosting {
  /** Throws 422 `GIT_HOSTING_NOT_CONFIGURED`, which names the missing settings. */
  require(purpose: 'tokens' | 'people'): GitHostingProvider;
  /** Undefined if none is configured. */
  provider: GitHostingProvider | undefined;
  /** Throws 400 for a notification that the provider did not sign. */
  verify(raw: Buffer, signature: string | undefined): void;
}

export function createGitHosting({ gitHosting: { github }, http }: Pick<Config, 'gitHosting' | 'http'>): GitHosting {
  const { appId, privateKey, clientId, clientSecret, address, gitHost, webhookSecrets } = github;
  const forTokens = { ATRIUM_GITHUB_APP_ID: appId, ATRIUM_GITHUB_PRIVATE_KEY: privateKey };
  const forPeople = { ...forTokens, ATRIUM_GITHUB_CLIENT_ID: clientId, ATRIUM_GITHUB_CLIENT_SECRET: clientSecret };
  const provider = providerOf();
  return {
    provider,
    require(purpose) {
      const needed = purpose === 'tokens' ? forTokens : forPeople;
      const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [name] : []));
      if (provider !== undefined && missing.length === 0) return provider;
      const detail = `The operator has not set ${missing.join(', ')}, without which GitHub cannot be used here.`;
      throw hostingError('GIT_HOSTING_NOT_CONFIGURED', detail);
    },
    verify: (raw, signature) => verifyHubSignature(raw, signature, webhookSecrets),
  };

  function providerOf(): GitHostingProvider | undefined {
    if (appId === undefined || privateKey === undefined) return undefined;
    const redirectUrl = new URL(connectedPath, `${http.publicUrl.replace(/\/+$/, '')}/`).href;
    const oauth =
      clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret, redirectUrl };
    return createGitHub({ appId, privateKey, address, gitHost, oauth });
  }
}

/** `X-Hub-Signature-256` over the raw bytes, by one of the secrets (two during a rotation). Throws 400. */
export function verifyHubSignature(raw: Buffer, signature: string | undefined, secrets: readonly string[]): void {
  const given = Buffer.from(signature ?? '', 'latin1');
  const isSigned = secrets
    .map((secret) => Buffer.from(signHub(raw, secret), 'latin1'))
    .some((wanted) => wanted.length === given.length && timingSafeEqual(wanted, given));
  if (!isSigned) {
    throw new DomainError('invalid', 'INVALID_SIGNATURE', 'The signature of this notification does not hold.');
  }
}

/** Signs as GitHub does. */
export function signHub(raw: string | Buffer, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(raw).digest('hex')}`;
}
