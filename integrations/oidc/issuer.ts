import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  fetchUserInfo,
  None,
  randomNonce,
  randomPKCECodeVerifier,
} from 'openid-client';
import { firstOf } from '../../base/text.ts';
import type { Config } from '../../config/index.ts';
import { limitedFetch } from '../http/limitedFetch.ts';
import { issuerRefused, normaliseIssuerError } from './errors.ts';

export type OidcConfig = NonNullable<Config['signIn']['oidc']>;

/** Who somebody is, according to the issuer. */
export interface Identification {
  issuer: string;
  subject: string;
  /** Absent unless it is verified, or the configuration trusts unverified addresses. */
  email: string | undefined;
  name: string | undefined;
}

/** What must be remembered between sending the browser away and its return. */
export interface OidcRequest {
  url: URL;
  nonce: string;
  codeVerifier: string;
}

const timeoutSeconds = 10;
/** Keys and addresses of an issuer change rarely, and it says so in its metadata. */
const metadataMaxAgeMs = 3_600_000;

/** Sign-in by any OpenID Connect issuer: authorization code with PKCE, state and nonce. Failures are DomainErrors. */
export function createIssuer(oidc: OidcConfig, redirectUri: string) {
  let known: { at: number; configuration: Promise<Configuration> } | undefined;

  /** The issuer's metadata; asked for again after an hour, and after a failure. */
  function configure(): Promise<Configuration> {
    if (known !== undefined && performance.now() - known.at < metadataMaxAgeMs) return known.configuration;
    const configuration = discoverIssuer(oidc);
    known = { at: performance.now(), configuration };
    configuration.catch(() => {
      known = undefined;
    });
    return configuration;
  }

  return {
    /** Where to send the browser; `state` comes back with it. */
    async begin(state: string): Promise<OidcRequest> {
      const configuration = await configure();
      const codeVerifier = randomPKCECodeVerifier();
      const nonce = randomNonce();
      const url = buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: oidc.scopes,
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      });
      return { url, nonce, codeVerifier };
    },

    /**
     * Identifies who has come back with this query. Throws 403 `SIGN_IN_REFUSED`, 502 `ISSUER_FAILED` or 503
     * `ISSUER_UNREACHABLE`.
     */
    async finish(
      query: string,
      { state, nonce, codeVerifier }: { state: string; nonce: string; codeVerifier: string },
    ): Promise<Identification> {
      try {
        const configuration = await configure();
        const tokens = await authorizationCodeGrant(configuration, new URL(`${redirectUri}?${query}`), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw issuerRefused();
        // Some issuers keep the address out of the ID token.
        const more = hasUserInfo(configuration) && claims.email === undefined;
        const info = more ? await fetchUserInfo(configuration, tokens.access_token, claims.sub) : {};
        return identify({ ...claims, ...info }, claims.iss, claims.sub, oidc.trustEmail);
      } catch (error) {
        throw normaliseIssuerError(error);
      }
    },
  };
}

/** The issuer's metadata. Throws 502 `ISSUER_FAILED` or 503 `ISSUER_UNREACHABLE`. */
export async function discoverIssuer({ issuer, clientId, clientSecret }: OidcConfig): Promise<Configuration> {
  const options = {
    timeout: timeoutSeconds,
    [customFetch]: limitedFetch,
    // An issuer without TLS is on this machine, or the operator's own decision.
    ...(issuer.startsWith('http:') && { execute: [allowInsecureRequests] }),
  };
  try {
    // The issuer decides how the client secret is sent, so its metadata is read first.
    const found = await discovery(new URL(issuer), clientId, undefined, None(), options);
    if (clientSecret === undefined) return found;
    const methods = found.serverMetadata().token_endpoint_auth_methods_supported;
    return await discovery(new URL(issuer), clientId, undefined, secretBy(methods, clientSecret), options);
  } catch (error) {
    throw normaliseIssuerError(error);
  }
}

/** The default is `client_secret_basic` (OpenID Connect Discovery 1.0, section 3). */
function secretBy(methods: readonly string[] | undefined, secret: string): ClientAuth {
  const usesPost = methods !== undefined && !methods.includes('client_secret_basic');
  return usesPost ? ClientSecretPost(secret) : ClientSecretBasic(secret);
}

function hasUserInfo(configuration: Configuration): boolean {
  return configuration.serverMetadata().userinfo_endpoint !== undefined;
}

function identify(
  claims: Record<string, unknown>,
  issuer: string,
  subject: string,
  trustEmail: boolean,
): Identification {
  const { email, email_verified: verified, name, preferred_username: username } = claims;
  // Some issuers send the boolean as a string.
  const isVerified = verified === true || verified === 'true' || (trustEmail && verified === undefined);
  const shown = [name, username].find((text) => typeof text === 'string' && text.trim() !== '');
  return {
    issuer,
    subject,
    email: isVerified && typeof email === 'string' ? email : undefined,
    name: typeof shown === 'string' ? firstOf(shown.trim(), 200).toWellFormed() : undefined,
  };
}
