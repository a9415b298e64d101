import { expectBooksInOrder } from '../../builders/billing.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// Setup, purchases and the pages that a buyer sees, in a running product with the development payment provider.

let product: TestProduct;
let owner: ChatUser;
beforeAll(async () => {
  product = await buildProduct(hurriedSweeper);
  owner = await product.user('owner');
});
afterAll(async () => {
  await expectBooksInOrder(product.environment.database);
  await product.close();
});

const json = async (response: Response) => ({ status: response.status, body: (await response.json()) as Body });
type Body = Record<string, unknown> & { code?: string; url: string; checkoutId: string; operationId: string };
const post = async (user: ChatUser, path: string, body: unknown, headers = {}) =>
  json(await user.fetch(path, { method: 'POST', body, headers }));
const billing = (user: ChatUser) => user.get<Record<string, number>>(`/api/billing/${user.spaceId}`);
const setup = (user: ChatUser, body: unknown, spaceId = user.spaceId) =>
  post(user, `/api/billing/${spaceId}/setup`, body);
const topUp = (user: ChatUser, amount: unknown, headers = {}) =>
  post(user, `/api/billing/${user.spaceId}/top-up`, { amount }, headers);
/** Leads a URL of Atrium to this test's product: the public address has no port. */
const local = (address: string) => {
  const { pathname, search } = new URL(address, product.url);
  return product.url + pathname + search;
};
const choose = (url: string, choice: string) =>
  fetch(`${local(url)}/${choice}`, { method: 'POST', redirect: 'manual' });

test('Setup grants the initial credits once, also when repeats ask for other amounts', async () => {
  const user = await product.user('setup');
  const answers = await Promise.all([100, 100, 7].map((initialCredits) => setup(user, { initialCredits })));
  expect(answers.map(({ status, body }) => [status, body])).toEqual(Array(3).fill([200, { ok: true }]));
  const { balance } = await billing(user);
  expect([7, 100]).toContain(balance);
  expect((await setup(user, { initialCredits: 500 })).body).toEqual({ ok: true });
  expect(await billing(user)).toMatchObject({ balance, granted: balance, setUp: true, currency: 'usd', reserved: 0 });
});

test('setup refuses bad input, amounts over the limits, and members who are not owners', async () => {
  const user = await product.user('refused');
  expect(await setup(user, { initialCredits: -1 })).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } });
  expect(await setup(user, { initialCredits: 'x' })).toMatchObject({ status: 400 });
  expect(await setup(user, { initialCredits: 1e6 })).toMatchObject({
    status: 422,
    body: { code: 'INITIAL_CREDITS_TOO_HIGH' },
  });
  await product.identity.members.add(owner.spaceId, user.email, 'editor');
  expect(await setup(user, {}, owner.spaceId)).toMatchObject({ status: 403, body: { code: 'ROLE_TOO_LOW' } });
  const stranger = await product.user('stranger');
  expect(await setup(stranger, {}, owner.spaceId)).toMatchObject({ status: 404 });
  for (const path of ['', '/entries', '/entries.csv']) {
    expect((await stranger.fetch(`/api/billing/${owner.spaceId}${path}`)).status).toBe(404);
  }
  expect(await post(stranger, `/api/billing/${owner.spaceId}/top-up`, { amount: 10 })).toMatchObject({ status: 404 });
  expect((await fetch(`${product.url}/api/billing/${owner.spaceId}`)).status).toBe(401);
  expect((await setup(user, {})).body).toEqual({ ok: true });
});

test('The initial credits of all spaces of one user have a maximum', async () => {
  const user = await product.user('mint');
  const spaces = await Promise.all(
    Array.from({ length: 6 }, async () => (await product.identity.spaces.create(user.id, 'x')).space.id),
  );
  const answers = await Promise.all(spaces.map((spaceId) => setup(user, { initialCredits: 1000 }, spaceId)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 422]);
});

test('a top-up is paid on the page, credited once, and its operation ends', async () => {
  const user = await product.user('buyer');
  const bought = await topUp(user, 12.34);
  expect(bought).toMatchObject({
    status: 200,
    body: { url: expect.stringMatching(/\/api\/billing\/development\/cs_/) },
  });
  const page = await fetch(local(bought.body.url));
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await page.text()).toContain('Development payment');
  expect(await billing(user)).toMatchObject({ balance: 0 });

  const back = await choose(bought.body.url, 'pay');
  expect(back.status).toBe(303);
  await waitFor('the credits', async () => (await billing(user)).balance === 1234);
  expect(await billing(user)).toMatchObject({ balance: 1234, paid: 1234 });
  await waitFor('the end of the operation', async () => {
    const operation = await user.get<{ status: string }>(`/api/operations/${bought.body.operationId}`);
    return operation.status === 'succeeded';
  });
  await choose(bought.body.url, 'pay');
  expect(
    await (await fetch(local(back.headers.get('location') ?? ''), { headers: { accept: 'application/json' } })).json(),
  ).toEqual({ status: 'paid', credited: true, amount: 12.34, currency: 'usd', credits: 1234 });
  expect(await billing(user)).toMatchObject({ balance: 1234 });
});

test('A failed or cancelled payment credits nothing, and both result pages say so', async () => {
  const user = await product.user('unlucky');
  const failed = await topUp(user, 10);
  await choose(failed.body.url, 'fail');
  const result = (page: string, id: string) =>
    fetch(`${product.url}/api/billing/checkout-${page}?session_id=${id}`, { headers: { accept: 'text/html' } });
  await waitFor('the failure', async () =>
    (await (await result('success', failed.body.checkoutId)).text()).includes('Not paid'),
  );
  const cancelled = await topUp(user, 10);
  const back = await choose(cancelled.body.url, 'cancel');
  const page = () => fetch(local(back.headers.get('location') ?? ''), { headers: { accept: 'text/html' } });
  await waitFor('the checkout to end', async () => (await (await page()).text()).includes('Checkout ended'));
  expect(await (await result('success', '"><script>')).text()).toContain('No checkout');
  expect(await billing(user)).toMatchObject({ balance: 0 });
});

test('The success page of an open checkout refreshes, the cancel page links back, and an unknown page is 404', async () => {
  const user = await product.user('undecided');
  const { body } = await topUp(user, 10);
  const page = async (path: string) => {
    const response = await fetch(`${product.url}/api/billing/${path}`, { headers: { accept: 'text/html' } });
    return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
  };
  const { text: success } = await page(`checkout-success?session_id=${body.checkoutId}`);
  expect(success).toMatch(/<title>Waiting for the payment · Atrium<\/title>[\s\S]*1000 credits[\s\S]*\$10\.00/);
  expect(success).toContain('http-equiv="refresh"');
  const { text: cancel } = await page(`checkout-cancel?session_id=${body.checkoutId}`);
  expect(cancel).toContain(
    `You have left the checkout. Nothing was charged.</p>\n<a class="button second" href="${body.url}"`,
  );
  expect(cancel).not.toContain('http-equiv="refresh"');
  const none = await page('development/none');
  expect(none).toMatchObject({ status: 404, type: 'text/html; charset=utf-8' });
  expect(none.text).not.toContain('sign-in"');
  const asJson = await fetch(`${product.url}/api/billing/development/none`);
  expect(await asJson.json()).toMatchObject({ status: 404, code: 'NOT_FOUND' });
});

test("The result pages link back to the buyer's return URL, and a foreign return URL is refused", async () => {
  const user = await product.user('returning');
  const returnUrl = new URL('/chat?from=checkout', product.environment.config.http.publicUrl);
  const { body } = await post(user, `/api/billing/${user.spaceId}/top-up`, {
    amount: 10,
    returnUrl: returnUrl.href,
  });
  const link = `<a class="button" href="${returnUrl.href}">Back to ${returnUrl.host}</a>`;
  for (const page of ['success', 'cancel']) {
    const path = `/api/billing/checkout-${page}?session_id=${body.checkoutId}`;
    const response = await fetch(product.url + path, { headers: { accept: 'text/html' } });
    expect(await response.text()).toContain(link);
  }
  const refused = await post(user, `/api/billing/${user.spaceId}/top-up`, {
    amount: 10,
    returnUrl: `${returnUrl.origin}@evil.example/`,
  });
  expect(refused).toMatchObject({ status: 400, body: { code: 'RETURN_URL_NOT_ALLOWED' } });
});

test('cancelling the operation closes its checkout, which can then no longer be paid', async () => {
  const user = await product.user('regretful');
  const { body } = await topUp(user, 10);
  const cancelled = await user.fetch(`/api/operations/${body.operationId}/cancel`, { method: 'POST' });
  expect(cancelled.status).toBe(200);
  await waitFor('the cancelled operation', async () => {
    return (await user.get<{ status: string }>(`/api/operations/${body.operationId}`)).status === 'cancelled';
  });
  await choose(body.url, 'pay');
  expect(await billing(user)).toMatchObject({ balance: 0 });
  const page = await fetch(`${product.url}/api/billing/checkout-cancel?session_id=${body.checkoutId}`, {
    headers: { accept: 'application/json' },
  });
  expect(await page.json()).toMatchObject({ status: 'cancelled', credited: false });
});

test.each([
  [4.99, 422],
  [1000.01, 422],
  [10.001, 422],
  ['10', 400],
  [null, 400],
  [-5, 422],
])('a top-up of %p is refused with %i', async (amount, status) => {
  expect(await topUp(owner, amount)).toMatchObject({ status });
});

test.each([-10, 0, 4.99, 2e9, 1e300])('a top-up of %p is told the bounds of the operator', async (amount) => {
  const body = { code: 'AMOUNT_NOT_ALLOWED', detail: 'The amount is not between 5 and 1000.' };
  expect(await topUp(owner, amount)).toMatchObject({ status: 422, body });
  const path = `/api/billing/${owner.spaceId}/auto-top-up`;
  const automatic = { enabled: true, threshold: 60, amount, monthlyLimit: 15 };
  expect(await json(await owner.fetch(path, { method: 'PUT', body: automatic }))).toMatchObject({ status: 422, body });
});

test('A viewer cannot buy, and the same idempotency key returns the same checkout', async () => {
  const viewer = await product.user('viewer');
  await product.identity.members.add(owner.spaceId, viewer.email, 'viewer');
  expect(await post(viewer, `/api/billing/${owner.spaceId}/top-up`, { amount: 10 })).toMatchObject({ status: 403 });
  const key = { 'idempotency-key': 'buy-once' };
  const first = await topUp(owner, 20, key);
  expect((await topUp(owner, 20, key)).body).toEqual(first.body);
  expect(await topUp(owner, 21, key)).toMatchObject({ status: 422, body: { code: 'IDEMPOTENCY_KEY_REUSED' } });
});

test('The ledger is listed in pages and as CSV, and the owner sets caps and automatic top-ups', async () => {
  const user = await product.user('reader');
  await setup(user, { initialCredits: 50 });
  const page = await user.get<{ data: { kind: string; entries: { amountMicroCredits: number }[] }[] }>(
    `/api/billing/${user.spaceId}/entries?limit=1`,
  );
  expect(page.data[0]?.kind).toBe('grant');
  expect(page.data[0]?.entries.reduce((sum, { amountMicroCredits }) => sum + amountMicroCredits, 0)).toBe(0);
  const csv = await (await user.fetch(`/api/billing/${user.spaceId}/entries.csv`)).text();
  expect(csv.split('\r\n')).toHaveLength(4);
  const put = async (path: string, body: unknown) =>
    json(await user.fetch(`/api/billing/${user.spaceId}/${path}`, { method: 'PUT', body }));
  const caps = { perTurn: 1, perDay: null, perMemberPerDay: 2.5 };
  expect(await put('caps', caps)).toEqual({ status: 200, body: caps });
  expect(await put('auto-top-up', { enabled: true })).toMatchObject({ status: 422 });
  const auto = { enabled: true, threshold: 60, amount: 10, monthlyLimit: 15 };
  expect(await put('auto-top-up', auto)).toMatchObject({ status: 200, body: auto });
  // One charge fits the monthly limit, and lifts the balance over the threshold.
  await waitFor('the automatic top-up', async () => (await billing(user)).balance === 1050);
  const entries = async (query: string) => {
    const answered = await user.get<{ data: { kind: string }[]; nextCursor: string; previousCursor: string }>(
      `/api/billing/${user.spaceId}/entries?${query}`,
    );
    return { ...answered, kinds: answered.data.map(({ kind }) => kind) };
  };
  const oldest = await entries('order=asc&limit=1');
  expect(oldest.kinds).toEqual(['grant']);
  const later = await entries(`order=asc&cursor=${oldest.nextCursor}`);
  expect(later.kinds.at(-1)).toBe('topUp');
  expect((await entries(`cursor=${later.previousCursor}`)).kinds).toEqual(['grant']);
});
