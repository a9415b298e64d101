import { randomBytes } from 'node:crypto';
import type { Config } from '../../config/index.ts';
import { openMasterKeys } from '../../crypto/openMasterKeys.ts';
import { createMailer } from '../../integrations/mail/smtp.ts';
import { discoverIssuer } from '../../integrations/oidc/issuer.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';

/** Whether the issuer answers, with metadata that a sign-in can use. */
export async function checkSignIn({ signIn, http }: Pick<Config, 'signIn' | 'http'>): Promise<CheckResult> {
  const { oidc } = signIn;
  if (oidc === undefined) return off('no single sign-on: ATRIUM_OIDC_ISSUER is not set');
  try {
    const metadata = (await discoverIssuer(oidc)).serverMetadata();
    const missing = (['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const).filter(
      (name) => !metadata[name],
    );
    if (missing.length > 0) return wrong(`${oidc.issuer}: its metadata lack ${missing.join(', ')}`);
    const redirect = `${http.publicUrl.replace(/\/+$/, '')}/auth/oidc/callback`;
    return ok(`${metadata.issuer}; it must know the redirect ${redirect}`);
  } catch (error) {
    return wrong(`${oidc.issuer}: ${reasonOf(error)}`);
  }
}

/** Whether the mail server answers and accepts the login. */
export async function checkMail({ signIn }: Pick<Config, 'signIn'>): Promise<CheckResult> {
  if (signIn.mail === undefined) return off('no mail: ATRIUM_SMTP_URL is not set');
  const { host } = new URL(signIn.mail.smtpUrl);
  try {
    await createMailer(signIn.mail).verify();
    return ok(`${host}, from ${signIn.mail.from}`);
  } catch (error) {
    return wrong(`${host}: ${reasonOf(error)}`);
  }
}

/** Whether AWS KMS wraps and unwraps for us. Other master keys need no service. */
export async function checkKms(
  config: Pick<Config, 'masterKey' | 'otherMasterKeys' | 'kms' | 'dataDir'>,
): Promise<CheckResult> {
  if (config.kms.keyId === undefined) return off('not used: the master key is our own');
  try {
    const key = await (await openMasterKeys(config)).current();
    const dataKey = randomBytes(32);
    const unwrapped = await key.unwrap(await key.wrap(dataKey, 'doctor/1'), 'doctor/1');
    if (!unwrapped.equals(dataKey)) return wrong(`${config.kms.keyId}: it gives back another key than it was given`);
    return ok(`${config.kms.keyId} wraps and unwraps`);
  } catch (error) {
    return wrong(`${config.kms.keyId}: ${reasonOf(error)}`);
  }
}

/** The deepest cause in one line. The errors around it only say that something failed. */
function reasonOf(error: unknown): string {
  let { message, code, cause } = error as Reason;
  while (typeof cause === 'object' && cause !== null && 'message' in cause)
    ({ message, code, cause } = cause as Reason);
  return (message || code || 'it fails, and does not say why').split('\n')[0] ?? '';
}

interface Reason {
  message?: string;
  code?: string;
  cause?: unknown;
}
