import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import type { Environment } from '../../../config/index.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { startIssuer, type TestIssuer, testClient } from '../../fakes/issuer.ts';
import { startMailServer, type TestMailServer } from '../../fakes/mailServer.ts';
import { createBrowser, type TestBrowser, type Visit } from '../../support/browser.ts';

/** The redirect of a client with a page of its own. */
export const clientRedirect = 'https://app.example.com/signed-in?from=atrium';

/** Atrium with a real issuer and a real mail server. */
export interface SignInProduct extends TestProduct {
  issuer: TestIssuer;
  mailServer: TestMailServer;
  /** ATRIUM_PUBLIC_URL: the origin of pages, cookies and links. */
  publicUrl: string;
  /** Signs in through the issuer as its current person, and returns where the browser ends. */
  viaIssuer(browser?: TestBrowser, query?: string): Promise<Visit>;
  /** Exchanges the code, and returns the user with the session token. */
  meOf(
    code: string,
  ): Promise<{ id: string; email: string; name: string; token: string; spaces: { id: string; role: string }[] }>;
}

export async function buildSignInProduct(
  overrides: (issuer: TestIssuer, mailServer: TestMailServer) => Environment = () => ({}),
): Promise<SignInProduct> {
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const issuer = await startIssuer(`${publicUrl}/auth/oidc/callback`);
  const mailServer = await startMailServer();
  const product = await buildProduct({
    ATRIUM_PORT: String(port),
    ATRIUM_HOST: '127.0.0.1',
    ATRIUM_PUBLIC_URL: publicUrl,
    ATRIUM_SIGN_IN_REDIRECTS: `${clientRedirect},http://127.0.0.1/cli`,
    ATRIUM_OIDC_ISSUER: issuer.url,
    ATRIUM_OIDC_CLIENT_ID: testClient.id,
    ATRIUM_OIDC_CLIENT_SECRET: testClient.secret,
    ATRIUM_OIDC_NAME: 'Example & Co',
    ATRIUM_SMTP_URL: mailServer.url,
    ATRIUM_SMTP_FROM: 'Atrium <atrium@example.com>',
    ...overrides(issuer, mailServer),
  });
  return Object.assign(product, {
    issuer,
    mailServer,
    publicUrl,
    viaIssuer: (browser = createBrowser(), query = '') => browser.visit(`${publicUrl}/auth/oidc${query}`),
    async meOf(code: string) {
      const exchanged = await post(`${publicUrl}/auth/exchange-code`, { code });
      const { sessionToken } = (await exchanged.json()) as { sessionToken: string };
      const me = await fetch(`${publicUrl}/api/me`, { headers: { authorization: `Bearer ${sessionToken}` } });
      return { ...((await me.json()) as object), token: sessionToken } as never;
    },
    close: closeAll(product.close, issuer, mailServer),
  });
}

function closeAll(closeProduct: () => Promise<void>, issuer: TestIssuer, mailServer: TestMailServer) {
  return async () => {
    await closeProduct();
    await issuer.close();
    await mailServer.close();
  };
}

export function post(url: string, body: unknown, token?: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  });
}

/** The code that a page shows. */
export function codeOn({ text }: Visit): string {
  return /class="code"[^>]*>([^<]+)</.exec(text)?.[1] ?? '';
}

/** The text of the alert on a page. */
export function alertOn({ text }: Visit): string {
  return /role="alert">([^<]*)</.exec(text)?.[1] ?? '';
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
