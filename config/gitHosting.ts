import { createPrivateKey } from 'node:crypto';
import { z } from 'zod';
import { ConfigError } from './errors.ts';
import { list, webAddress } from './kinds.ts';

export const gitHostingSettings = z.object({
  ATRIUM_GITHUB_APP_ID: z
    .string()
    .regex(/^[A-Za-z0-9._-]{1,60}$/, 'the App’s id or client id')
    .optional(),
  ATRIUM_GITHUB_PRIVATE_KEY: z.string().min(1).optional(),
  ATRIUM_GITHUB_CLIENT_ID: z.string().min(1).optional(),
  ATRIUM_GITHUB_CLIENT_SECRET: z.string().min(1).optional(),
  ATRIUM_GITHUB_WEBHOOK_SECRETS: list.default([]),
  ATRIUM_GITHUB_ADDRESS: webAddress.default('https://api.github.com'),
  ATRIUM_GITHUB_GIT_HOST: z
    .string()
    .regex(/^[a-z0-9.-]+(:\d{1,5})?$/, 'a host in lower-case letters, with :port where it is not 443')
    .optional(),
});

type GitHostingEnvironment = z.infer<typeof gitHostingSettings>;

/** The App by which spaces reach repositories at GitHub. Missing settings are reported when needed, not at start. */
export function gitHostingConfig(env: GitHostingEnvironment) {
  const address = env.ATRIUM_GITHUB_ADDRESS.replace(/\/+$/, '');
  return Object.freeze({
    github: Object.freeze({
      appId: env.ATRIUM_GITHUB_APP_ID,
      privateKey: env.ATRIUM_GITHUB_PRIVATE_KEY && readKey(env.ATRIUM_GITHUB_PRIVATE_KEY),
      clientId: env.ATRIUM_GITHUB_CLIENT_ID,
      clientSecret: env.ATRIUM_GITHUB_CLIENT_SECRET,
      /** Several while one is being replaced. */
      webhookSecrets: env.ATRIUM_GITHUB_WEBHOOK_SECRETS,
      /** The API's address; `https://HOST/api/v3` for a GitHub Enterprise Server. */
      address,
      /** The repositories' host, as `normaliseHost` spells it. */
      gitHost: env.ATRIUM_GITHUB_GIT_HOST ?? gitHostOf(address),
    }),
  });
}

/** Reads a PEM. Its line breaks may be written `\n`, since many ways to set a variable allow only one line. */
function readKey(text: string): string {
  try {
    const key = createPrivateKey(text.replaceAll('\\n', '\n'));
    if (key.asymmetricKeyType === 'rsa') return key.export({ type: 'pkcs8', format: 'pem' }).toString();
  } catch {
    // Reported below, without any of the key's text.
  }
  throw new ConfigError('ATRIUM_GITHUB_PRIVATE_KEY is not right: it must be an RSA private key as PEM.');
}

/** `api.github.com` becomes `github.com`, and `api.acme.ghe.com` becomes `acme.ghe.com`. Other hosts stay the same. */
function gitHostOf(address: string): string {
  const { host } = new URL(address);
  return /^api\.(github\.com|[^.]+\.ghe\.com)$/.test(host) ? host.slice('api.'.length) : host;
}
