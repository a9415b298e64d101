import { z } from 'zod';
import { requireBeside } from './errors.ts';
import { bool, list, mailAddress, webAddress } from './kinds.ts';

export const signInSettings = z.object({
  ATRIUM_SIGN_UP: z.enum(['invited', 'open']).default('invited'),
  ATRIUM_SIGN_UP_DOMAINS: list.transform((domains) => domains.map((domain) => domain.toLowerCase())).default([]),
  ATRIUM_SIGN_IN_REDIRECTS: list
    .refine((urls) => urls.every((url) => URL.canParse(url) && !url.includes('#')), 'whole URLs, separated by commas')
    .default([]),
  ATRIUM_OIDC_ISSUER: webAddress.optional(),
  ATRIUM_OIDC_CLIENT_ID: z.string().min(1).optional(),
  ATRIUM_OIDC_CLIENT_SECRET: z.string().min(1).optional(),
  ATRIUM_OIDC_NAME: z.string().min(1).max(60).default('single sign-on'),
  ATRIUM_OIDC_SCOPES: z.string().min(1).default('openid email profile'),
  ATRIUM_OIDC_TRUST_EMAIL: bool.default(false),
  ATRIUM_SMTP_URL: mailAddress.optional(),
  ATRIUM_SMTP_FROM: z.string().min(3).max(320).optional(),
});

function oidcSettings(env: z.infer<typeof signInSettings>) {
  const { ATRIUM_OIDC_ISSUER: issuer, ATRIUM_OIDC_CLIENT_SECRET: clientSecret } = env;
  if (issuer === undefined) return undefined;
  const clientId = requireBeside('ATRIUM_OIDC_ISSUER', 'ATRIUM_OIDC_CLIENT_ID', env.ATRIUM_OIDC_CLIENT_ID);
  return Object.freeze({
    issuer,
    clientId,
    clientSecret,
    name: env.ATRIUM_OIDC_NAME,
    scopes: env.ATRIUM_OIDC_SCOPES,
    /** Trust addresses that the issuer marks neither as verified nor as unverified. */
    trustEmail: env.ATRIUM_OIDC_TRUST_EMAIL,
  });
}

/** Who may sign in, and how. */
export function signInConfig(env: z.infer<typeof signInSettings>) {
  return Object.freeze({
    /** Whether people without an invitation get an account by signing in. */
    signUp: env.ATRIUM_SIGN_UP,
    /** People who prove an address in one of these domains get an account too. */
    signUpDomains: env.ATRIUM_SIGN_UP_DOMAINS,
    /** Where the sign-in page may send a code: whole URLs. */
    redirects: env.ATRIUM_SIGN_IN_REDIRECTS,
    oidc: oidcSettings(env),
    mail:
      env.ATRIUM_SMTP_URL === undefined
        ? undefined
        : Object.freeze({
            smtpUrl: env.ATRIUM_SMTP_URL,
            from: requireBeside('ATRIUM_SMTP_URL', 'ATRIUM_SMTP_FROM', env.ATRIUM_SMTP_FROM),
          }),
  });
}
