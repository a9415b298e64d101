import { createBrowser } from '../../support/browser.ts';
import { alertOn, buildSignInProduct, clientRedirect, codeOn, type SignInProduct } from './support.ts';

// Sign-in by OpenID Connect, against a real issuer.

let product: SignInProduct;

beforeAll(async () => {
  product = await buildSignInProduct();
});
afterAll(() => product.close());

const verified = (name: string) => ({
  subject: `subject-${name}`,
  email: `${name}@example.com`,
  emailVerified: true,
  name: name.toUpperCase(),
});

test('A sign-in ends in a page with a code, and the code in a session', async () => {
  const user = await product.identity.users.add('ada@example.com', 'Ada');
  product.issuer.person = verified('ada');
  const page = await product.viaIssuer();
  expect(page.status).toBe(200);
  expect(page.headers.get('cache-control')).toBe('no-store');
  const me = await product.meOf(codeOn(page));
  expect(me).toMatchObject({ id: user.id, email: 'ada@example.com', name: 'Ada' });
});

test('A client with a page of its own gets the code there, and its state back', async () => {
  await product.identity.users.add('bob@example.com');
  product.issuer.person = verified('bob');
  const query = `?redirect=${encodeURIComponent(clientRedirect)}&state=${encodeURIComponent('a b&c')}`;
  const { url } = await product.viaIssuer(createBrowser(), query);
  const { searchParams } = new URL(url);
  expect([searchParams.get('from'), searchParams.get('state')]).toEqual(['atrium', 'a b&c']);
  expect((await product.meOf(searchParams.get('code') ?? '')).email).toBe('bob@example.com');
});

test('A program on the same machine gets the code on any port', async () => {
  await product.identity.users.add('cli@example.com');
  product.issuer.person = verified('cli');
  const redirect = 'http://127.0.0.1:49152/cli';
  const { url } = await product.viaIssuer(createBrowser(redirect), `?redirect=${encodeURIComponent(redirect)}`);
  expect((await product.meOf(new URL(url).searchParams.get('code') ?? '')).email).toBe('cli@example.com');
});

test.each([
  'https://evil.example/',
  'https://app.example.com/signed-in',
  `${clientRedirect}#x`,
  'https://app.example.com.evil.example/signed-in?from=atrium',
  'http://127.0.0.1:1/other',
  'http://localhost:1/cli',
  'https://127.0.0.1:1/cli',
  'http://user@127.0.0.1:1/cli',
  'javascript:alert(1)',
  '//evil.example',
  'nonsense',
])('400 for the redirect %s, wherever it is asked for', async (redirect) => {
  const query = `?redirect=${encodeURIComponent(redirect)}`;
  for (const path of ['/auth/sign-in', '/auth/oidc']) {
    const response = await fetch(`${product.publicUrl}${path}${query}`, { redirect: 'manual' });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      400,
      'REDIRECT_NOT_ALLOWED',
    ]);
  }
  const form = { redirect, code: 'X', email: 'a@example.com' };
  const forwarded = await createBrowser().visit(`${product.publicUrl}/auth/sign-in`, { redirect, code: 'X' });
  const mailed = await createBrowser().visit(`${product.publicUrl}/auth/email`, { redirect, email: form.email });
  expect([forwarded.status, mailed.status]).toEqual([400, 400]);
});

test('a person without an invitation does not get in, and is told why', async () => {
  product.issuer.person = verified('mallory');
  const page = await product.viaIssuer();
  expect([page.status, alertOn(page)]).toEqual([
    403,
    'You have no account here. Ask a member of a space for an invitation.',
  ]);
  expect(await product.identity.users.byEmail('mallory@example.com')).toBeUndefined();
});

test('an address that the issuer has not verified opens no account', async () => {
  await product.identity.users.add('victim@example.com');
  for (const emailVerified of [false, undefined]) {
    product.issuer.person = { subject: `thief-${emailVerified}`, email: 'victim@example.com', emailVerified };
    expect((await product.viaIssuer()).status).toBe(403);
  }
});

test('The account stays with its subject when the address changes', async () => {
  const user = await product.identity.users.add('carol@example.com');
  product.issuer.person = verified('carol');
  await product.viaIssuer();
  product.issuer.person = { ...verified('carol'), email: 'carol.new@example.com', emailVerified: false };
  expect((await product.meOf(codeOn(await product.viaIssuer()))).id).toBe(user.id);
});

test('A person who refuses at the issuer gets a page that says so', async () => {
  product.issuer.person = undefined;
  const page = await product.viaIssuer();
  expect([page.status, alertOn(page)]).toEqual([403, 'The sign-in service did not let you through.']);
});

test('a disabled user does not get in', async () => {
  const user = await product.identity.users.add('gone@example.com');
  const { pool } = product.environment.database;
  await pool.query('UPDATE users SET disabled_at = UTC_TIMESTAMP(3) WHERE id = ?', [user.id]);
  product.issuer.person = verified('gone');
  expect((await product.viaIssuer()).status).toBe(403);
});

describe('The answer of the issuer', () => {
  /** A browser that the issuer has sent back, and the address, which the browser has not visited yet. */
  async function comeBack(name: string) {
    if ((await product.identity.users.byEmail(`${name}@example.com`)) === undefined) {
      await product.identity.users.add(`${name}@example.com`);
    }
    product.issuer.person = verified(name);
    const browser = createBrowser(`${product.publicUrl}/auth/oidc/callback`);
    const { url } = await product.viaIssuer(browser);
    browser.stopAt = clientRedirect;
    return { browser, url: new URL(url) };
  }

  test('An answer in another browser is refused, and stays valid in its own', async () => {
    const { browser, url } = await comeBack('dave');
    const stranger = createBrowser();
    await stranger.visit(`${product.publicUrl}/auth/sign-in`);
    const page = await stranger.visit(url.href);
    expect([page.status, alertOn(page)]).toEqual([
      403,
      'This sign-in was started in another browser. Start again in this one.',
    ]);
    expect((await product.meOf(codeOn(await browser.visit(url.href)))).email).toBe('dave@example.com');
  });

  test('The cookie of a sign-in is not for scripts or other sites', async () => {
    const begun = await fetch(`${product.publicUrl}/auth/oidc`, { redirect: 'manual' });
    expect(begun.headers.get('set-cookie')).toMatch(/^atrium-sign-in=[\w-]{43};.*HttpOnly; SameSite=Lax/);
  });

  test('An answer is valid once', async () => {
    const { browser, url } = await comeBack('once');
    expect((await browser.visit(url.href)).status).toBe(200);
    const page = await browser.visit(url.href);
    expect([page.status, alertOn(page)]).toEqual([410, 'This sign-in was already used or has expired. Start again.']);
  });

  test.each([
    ['a made-up state', { state: 'x'.repeat(43) }, 410],
    ['no state', { state: undefined }, 400],
  ])('An answer with %s is refused', async (_what, changes, status) => {
    const { url } = await comeBack('erin');
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    const response = await fetch(url);
    expect(response.status).toBe(status);
  });

  test('An answer with a code of another sign-in is refused by PKCE and nonce', async () => {
    const [other, mine] = [await comeBack('frank'), await comeBack('grace')];
    mine.url.searchParams.set('code', other.url.searchParams.get('code') ?? '');
    expect((await mine.browser.visit(mine.url.href)).status).toBe(502);
  });

  test('An answer after ten minutes is refused', async () => {
    const { url } = await comeBack('heidi');
    const { pool } = product.environment.database;
    await pool.query("UPDATE sign_ins SET expires_at = UTC_TIMESTAMP(3) WHERE kind = 'oidc'");
    expect((await fetch(url)).status).toBe(410);
  });
});

test('The stored form of a sign-in under way reveals nothing', async () => {
  await fetch(`${product.publicUrl}/auth/oidc?redirect=${encodeURIComponent(clientRedirect)}&state=canary`, {
    redirect: 'manual',
  });
  const [rows] = await product.environment.database.pool.query('SELECT * FROM sign_ins');
  expect(
    JSON.stringify(rows, (_key, value) => (value?.data ? Buffer.from(value.data).toString('latin1') : value)),
  ).not.toMatch(/canary|app\.example/);
});

test('503 for a client that asks for JSON while the issuer is down', async () => {
  await product.issuer.close();
  // The metadata is known already, so it is the request for the token that fails.
  product.issuer.person = verified('ada');
  const begun = await fetch(`${product.publicUrl}/auth/oidc`, { redirect: 'manual' });
  expect(begun.status).toBe(303);
  const state = new URL(begun.headers.get('location') ?? '').searchParams.get('state') ?? '';
  const cookie = begun.headers.get('set-cookie')?.split(';')[0] ?? '';
  const url = `${product.publicUrl}/auth/oidc/callback?code=x&state=${state}&iss=${encodeURIComponent(product.issuer.url)}`;
  const response = await fetch(url, { headers: { cookie } });
  expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([503, 'ISSUER_UNREACHABLE']);
});
