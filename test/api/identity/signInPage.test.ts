import request from 'supertest';
import { buildApi, type TestApi } from '../../builders/api.ts';
import { buildUser } from '../../builders/identity.ts';
import { clientRedirect } from './support.ts';

// The page itself, with nothing set up but the redirects of clients.

let api: TestApi;

beforeAll(async () => {
  api = await buildApi({ ATRIUM_SIGN_IN_REDIRECTS: `${clientRedirect},example.app://signed-in` });
});
afterAll(() => api.close());

const page = (query = '') => api.as().get(`/auth/sign-in${query}`).set('accept', 'text/html');
const withRedirect = (redirect: string, state = 's') => `?${new URLSearchParams({ redirect, state })}`;

test('Without other ways to sign in, the page takes a code, and says how to get one', async () => {
  const { status, text, headers } = await page();
  expect([status, text]).toEqual([200, expect.stringContaining('npm run -s atrium -- code')]);
  expect(text).toContain('<form method="post" action="/auth/sign-in">');
  expect(text).not.toMatch(/<script|style=|onclick/);
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' https://app.example.com",
  );
  expect([headers['cache-control'], headers['referrer-policy']]).toEqual(['no-store', 'same-origin']);
});

test('The files that the page links to are there', async () => {
  const { text } = await page();
  const files = [...text.matchAll(/(?:href|src)="(\/auth\/assets\/[^"]+)"/g)].map(([, file]) => file ?? '');
  expect(files.length).toBeGreaterThan(1);
  for (const file of files) expect((await api.as().get(file)).status).toBe(200);
});

test('A code from elsewhere goes on to the client’s page, with its state', async () => {
  const { user } = await buildUser(api.identity);
  const { code } = await api.identity.codes.create(user.id);
  const { text } = await page(withRedirect(clientRedirect, 'the state'));
  expect(text).toContain('name="state" value="the state"');
  const sent = await request(api.app)
    .post('/auth/sign-in')
    .type('form')
    .send({ code: ` ${code} `, redirect: clientRedirect, state: 'the state' });
  expect(sent.status).toBe(303);
  const { searchParams } = new URL(sent.headers.location ?? '');
  expect([searchParams.get('state'), searchParams.get('from')]).toEqual(['the state', 'atrium']);
  const exchanged = await api.as().post('/auth/exchange-code', { code: searchParams.get('code') ?? '' });
  expect((await api.as(exchanged.body.sessionToken).get('/api/me')).body.id).toBe(user.id);
});

test('A code without a redirect goes to the first client that the operator has allowed', async () => {
  const sent = await request(api.app).post('/auth/sign-in').type('form').send({ code: 'K7QD-9XMR-2TWH-PZ4C' });
  expect([sent.status, new URL(sent.headers.location ?? '').origin]).toEqual([303, 'https://app.example.com']);
});

test('Without allowed redirects, the code is exchanged, and the way back is a link', async () => {
  const bare = await buildApi({ ATRIUM_CORS_ORIGINS: 'https://app.example.com' });
  try {
    const { user } = await buildUser(bare.identity);
    const { code } = await bare.identity.codes.create(user.id);
    const returnUrl = 'https://app.example.com/chat';
    const { text } = await bare.as().get(`/auth/sign-in?returnUrl=${returnUrl}`).set('accept', 'text/html');
    expect(text).toContain(`name="returnUrl" value="${returnUrl}"`);
    const send = (form: object) =>
      request(bare.app).post('/auth/sign-in').type('form').set('accept', 'text/html').send(form);
    const sent = await send({ code, returnUrl });
    expect([sent.status, sent.headers['cache-control']]).toEqual([200, 'no-store']);
    expect(sent.text).toContain(`<a class="button" href="${returnUrl}">Go on to app.example.com</a>`);
    const [, token] = /aria-label="Session token">([^<]+)</.exec(sent.text) ?? [];
    expect((await bare.as(token).get('/api/me')).body.id).toBe(user.id);
    expect((await send({ code })).status).toBe(401);
    expect((await send({ code, returnUrl: 'https://evil.example/' })).status).toBe(400);
    expect((await bare.as().get('/auth/sign-in?returnUrl=//evil.example')).status).toBe(400);
    const foreign = await send({ code }).set('origin', 'https://evil.example');
    expect(foreign.status).toBe(403);
  } finally {
    await bare.close();
  }
});

test('Parameters of the address are written as text', async () => {
  const { text } = await page(withRedirect(clientRedirect, '"><script>alert(1)</script>'));
  expect(text).not.toContain('<script>');
  expect(text).toContain('&quot;&gt;&lt;script&gt;');
});

test('The form of the page may end at the client, on the web or in an app', async () => {
  const web = await page(withRedirect(clientRedirect));
  expect(web.headers['content-security-policy']).toMatch(/form-action 'self' https:\/\/app\.example\.com$/);
  const app = await page(withRedirect('example.app://signed-in'));
  expect(app.headers['content-security-policy']).toMatch(/form-action 'self' example\.app:$/);
});

test('404 for ways to sign in that are not set up', async () => {
  for (const path of ['/auth/oidc', '/auth/oidc/callback?state=x']) {
    expect((await api.as().get(path)).status).toBe(404);
  }
  const mail = await request(api.app).post('/auth/email').type('form').send({ email: 'a@example.com' });
  expect(mail.status).toBe(404);
});

test('a problem is a page for people and JSON for programs', async () => {
  const path = '/auth/email/absent';
  const forPeople = await api.as().get(path).set('accept', 'text/html');
  expect([forPeople.status, forPeople.type]).toEqual([410, 'text/html']);
  expect(forPeople.text).toContain('role="alert"');
  const forPrograms = await api.as().get(path);
  expect([forPrograms.status, forPrograms.type, forPrograms.body.code]).toEqual([
    410,
    'application/problem+json',
    'SIGN_IN_EXPIRED',
  ]);
});
