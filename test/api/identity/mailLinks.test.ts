import { createBrowser } from '../../support/browser.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';
import { alertOn, buildSignInProduct, clientRedirect, codeOn, type SignInProduct } from './support.ts';

const full = inFull('identity');

// Sign-in by a mailed link, over a real SMTP server.

let product: SignInProduct;

beforeAll(async () => {
  product = await buildSignInProduct(() => ({ ...hurriedSweeper, ATRIUM_SIGN_UP_DOMAINS: 'Staff.Example.COM' }));
});
afterAll(() => product.close());

const ask = (email: string, fields: Record<string, string> = {}) =>
  createBrowser().visit(`${product.publicUrl}/auth/email`, { email, ...fields });

async function waitingMails(): Promise<number> {
  const [[row]] = (await product.environment.database.pool.query('SELECT COUNT(*) AS n FROM mails')) as never as [
    [{ n: number }],
  ];
  return row.n;
}

/** A mail that has been sent leaves no row. */
const allSent = () => waitFor('no mail to be kept', async () => (await waitingMails()) === 0);

test('The link shows a form, which ends in a code', async () => {
  const user = await product.identity.users.add('ada@example.com');
  const page = await ask(' Ada@Example.com ');
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('ada@example.com')]);
  const link = await product.mailServer.linkFor('ada@example.com');
  expect(link).toMatch(new RegExp(`^${product.publicUrl}/auth/email/[\\w-]{43}$`));
  const browser = createBrowser();
  // A program that opens the link, however often, does not use it up.
  for (let look = 0; look < 3; look++) expect((await browser.visit(link)).status).toBe(200);
  const me = await product.meOf(codeOn(await browser.visit(link, {})));
  expect(me.id).toBe(user.id);
  const again = await browser.visit(link, {});
  expect([again.status, alertOn(again)]).toEqual([410, expect.stringContaining('This sign-in was already used')]);
  expect((await browser.visit(link)).status).toBe(410);
  await allSent();
});

test('the code goes to the client’s page, with its state', async () => {
  await product.identity.users.add('bob@example.com');
  await ask('bob@example.com', { redirect: clientRedirect, state: 's1' });
  const browser = createBrowser();
  const link = await product.mailServer.linkFor('bob@example.com');
  const page = await browser.visit(link);
  expect(page.headers.get('content-security-policy')).toContain("form-action 'self' https://app.example.com");
  const { searchParams } = new URL((await browser.visit(link, {})).url);
  expect(searchParams.get('state')).toBe('s1');
  expect((await product.meOf(searchParams.get('code') ?? '')).email).toBe('bob@example.com');
});

test('Of twenty simultaneous visits to one link, one gets in', async () => {
  await product.identity.users.add('race@example.com');
  await ask('race@example.com');
  const link = await product.mailServer.linkFor('race@example.com');
  const visits = await Promise.all(Array.from({ length: 20 }, () => createBrowser().visit(link, {})));
  expect(visits.filter(({ status }) => status === 200)).toHaveLength(1);
  expect(visits.filter(({ status }) => status === 410)).toHaveLength(19);
});

test('A stranger gets the same answer but no mail, and an allowed domain opens an account', async () => {
  const [known, unknown] = [await ask('ada@example.com'), await ask('nobody@example.com')];
  const neutral = (text: string) => text.replaceAll(/[\w.]+@example\.com/g, 'ADDRESS');
  expect(neutral(unknown.text)).toBe(neutral(known.text));
  await product.mailServer.linkFor('ada@example.com');
  await ask('new@staff.example.com');
  const link = await product.mailServer.linkFor('new@staff.example.com');
  expect(product.mailServer.mails.some(({ to }) => to.includes('nobody@example.com'))).toBe(false);
  const me = await product.meOf(codeOn(await createBrowser().visit(link, {})));
  // A person who comes without an invitation gets a space to begin in.
  expect([me.email, me.spaces.map(({ role }) => role)]).toEqual(['new@staff.example.com', ['owner']]);
  await allSent();
  const { offered } = product.mailServer;
  await ask('new@evilstaff.example.com');
  await ask('new@staff.example.com.evil.example');
  await allSent();
  expect(product.mailServer.offered).toBe(offered);
});

test.each([
  '',
  'no address',
  'a@b@c',
  'a@example.com, b@example.com',
  'a@example.com\nBcc: b@example.com',
  `${'a'.repeat(260)}@b.c`,
])('No mail is sent to the address %j', async (email) => {
  const before = product.mailServer.offered;
  const { status } = await ask(email);
  expect([200, 400]).toContain(status);
  expect(await waitingMails()).toBe(0);
  expect(product.mailServer.offered).toBe(before);
});

const site = (headers: Record<string, string>) => [JSON.stringify(headers), headers] as const;

test.each([
  site({ 'sec-fetch-site': 'cross-site' }),
  site({ 'sec-fetch-site': 'same-site' }),
  site({ origin: 'https://evil.example' }),
  site({ origin: 'null' }),
  site({ 'sec-fetch-site': 'none', origin: 'https://evil.example' }),
  site({ 'sec-fetch-site': 'same-origin', origin: 'http://localhost:1' }),
])('403 for a form that another site sends: %s', async (_name, headers) => {
  const post = (path: string) =>
    fetch(product.publicUrl + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body:
        {
          '/auth/email': 'email=ada%40example.com',
          '/auth/sign-in': 'code=x&redirect=https%3A%2F%2Fapp.example.com%2Fdone',
        }[path] ?? '',
    });
  for (const path of ['/auth/email', '/auth/email/x', '/auth/sign-in']) {
    const response = await post(path);
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([403, 'CROSS_SITE']);
  }
});

test('The work before the answer is the same with and without an account', async () => {
  await product.identity.users.add('timed@example.com');
  const { pool } = product.environment.database;
  const traces: unknown[] = [];
  for (const email of ['timed@example.com', 'never-seen@example.com']) {
    const count = async () => {
      const [rows] = await pool.query("SELECT COUNT(*) AS n FROM sign_ins WHERE kind = 'email'");
      return (rows as { n: number }[])[0]?.n ?? 0;
    };
    const before = await count();
    const { status } = await ask(email);
    traces.push([status, (await count()) - before]);
  }
  expect(traces).toEqual(Array(2).fill([200, 1]));
  await product.mailServer.linkFor('timed@example.com');
  await allSent();
  expect(product.mailServer.mails.some(({ to }) => to.includes('never-seen@example.com'))).toBe(false);
});

test('An address gets at most five mails in a quarter of an hour', async () => {
  await product.identity.users.add('flood@example.com');
  const statuses = [];
  for (let i = 0; i < 7; i++) statuses.push((await ask(i % 2 ? 'FLOOD@example.com' : 'flood@example.com')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429]);
});

test('A mail is sent again after a temporary refusal, and not after a permanent one', async () => {
  await product.identity.users.add('late@example.com');
  await allSent();
  product.mailServer.refuseWith = 450;
  await ask('late@example.com');
  const before = product.mailServer.offered;
  await waitFor('a first attempt', () => product.mailServer.offered > before);
  product.mailServer.refuseWith = undefined;
  expect(await product.mailServer.linkFor('late@example.com')).toContain('/auth/email/');

  await allSent();
  product.mailServer.refuseWith = 550;
  const offered = product.mailServer.offered;
  await ask('late@example.com');
  await waitFor('the refusal', async () => product.mailServer.offered === offered + 1 && (await waitingMails()) === 0);
  product.mailServer.refuseWith = undefined;
});

full.test('A mail that was not sent before a kill goes out after the next start', async () => {
  await product.identity.users.add('kill@example.com');
  product.mailServer.refuseWith = 421;
  const before = product.mailServer.offered;
  await ask('kill@example.com');
  await waitFor('an attempt', () => product.mailServer.offered > before);
  await product.process.kill('SIGKILL');
  product.mailServer.refuseWith = undefined;
  await product.restart();
  const link = await product.mailServer.linkFor('kill@example.com');
  expect((await createBrowser().visit(link, {})).status).toBe(200);
});

test('The sweeper sends a mail whose workflow was never started', async () => {
  const { mails } = product.identity;
  const mail = await mails.seal(
    { to: 'swept@example.com', subject: 's', text: 'http://swept' },
    new Date(Date.now() + 60_000),
  );
  const { transaction } = await import('../../../models/database/database.ts');
  await transaction(product.environment.database, (tx) => mails.store(tx, mail));
  expect(await product.mailServer.linkFor('swept@example.com')).toBe('http://swept');
});

test('The stored forms of a link and of its mail reveal nothing, and the log has no link', async () => {
  await product.identity.users.add('stored@example.com');
  product.mailServer.refuseWith = 450;
  await ask('stored@example.com');
  await waitFor('a waiting mail', async () => (await waitingMails()) > 0);
  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT HEX(sealed) AS sealed FROM mails UNION ALL SELECT HEX(sealed) FROM sign_ins');
  const stored = (rows as { sealed: string }[])
    .map(({ sealed }) => Buffer.from(sealed, 'hex').toString('latin1'))
    .join();
  expect(stored).not.toMatch(/stored@example|auth\/email/);
  product.mailServer.refuseWith = undefined;
  await product.mailServer.linkFor('stored@example.com');
  expect(product.process.log()).not.toContain('/auth/email/');
});
