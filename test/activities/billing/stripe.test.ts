import { beginAutoTopUp } from '../../../models/billing/autoTopUp.ts';
import { findEvent } from '../../../models/billing/paymentEvents.ts';
import { reconcileScheduleId } from '../../../temporal/workflowIds.ts';
import { balancesOf, expectBooksInOrder } from '../../builders/billing.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { type FakeStripe, type Fields, startFakeStripe } from '../../fakes/stripeServer.ts';
import { triggerSchedule } from '../../replay/histories.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// Buying in a running Atrium, with a fake of Stripe's HTTP API.

let stripe: FakeStripe;
let product: TestProduct;
beforeAll(async () => {
  stripe = await startFakeStripe();
  product = await buildProduct({
    ...hurriedSweeper,
    ...stripe.environment,
    ATRIUM_BILLING_INITIAL_CREDITS_MAX: '1000',
  });
});
beforeEach(() => {
  stripe.card = 'good';
});
afterAll(async () => {
  await expectBooksInOrder(product.environment.database);
  await product.close();
  await stripe.stop();
});

const micro = 1_000_000;
const balances = (user: ChatUser) => balancesOf(product.environment.database, user.spaceId);
const post = (user: ChatUser, path: string, body: unknown) =>
  user.fetch(`/api/billing/${user.spaceId}/${path}`, { method: 'POST', body });

interface Bought {
  session: Fields;
  checkoutId: string;
  operationId: string;
}

async function buy(user: ChatUser, amount = 10): Promise<Bought> {
  const answer = await post(user, 'top-up', { amount });
  const { url, checkoutId, operationId } = (await answer.json()) as Record<string, string>;
  const session = stripe.sessions.get(url?.split('/').at(-1) ?? '') ?? {};
  return { session, checkoutId: checkoutId ?? '', operationId: operationId ?? '' };
}

/** Sends a notification, waits until it is settled, and returns its outcome. */
async function tell(type: string, object: Fields, id = `evt_${type}_${Math.random()}`): Promise<string> {
  const answer = await stripe.notify(product.url, type, object, id);
  expect([answer.status, await answer.json()]).toEqual([200, { received: true }]);
  const event = await waitFor(`the settlement of ${type}`, async () => {
    const row = await findEvent(product.environment.database, id);
    return row?.status === 'settled' && row;
  });
  return event.outcome ?? '';
}

test('A Stripe session names its space and checkout, and is created with an idempotency key', async () => {
  const user = await product.user('bound');
  const { session, checkoutId } = await buy(user, 12.5);
  expect(session).toMatchObject({
    ...{ client_reference_id: checkoutId, amount_total: 1250, currency: 'usd' },
    metadata: { checkoutId, spaceId: user.spaceId },
  });
  const request = stripe.requests.find(({ body }) => body.client_reference_id === checkoutId);
  expect(request).toMatchObject({
    idempotencyKey: `checkout:${checkoutId}`,
    body: {
      mode: 'payment',
      success_url: expect.stringMatching(/\/api\/billing\/checkout-success\?session_id=\{CHECKOUT_SESSION_ID\}$/),
      cancel_url: expect.stringContaining(`/api/billing/checkout-cancel?session_id=${checkoutId}`),
      payment_intent_data: { metadata: { checkoutId } },
    },
  });
});

test('A checkout is retried when the provider answers with 5xx', async () => {
  const user = await product.user('stumbles');
  stripe.failNext(500, 500, 503);
  const { session } = await buy(user);
  expect(session.status).toBe('open');
});

test('502 for a purchase that the provider refuses, and the next try works', async () => {
  const user = await product.user('refused');
  await post(user, 'setup', {});
  stripe.failNext(400);
  const answer = await post(user, 'top-up', { amount: 10 });
  expect([answer.status, await answer.json()]).toEqual([
    502,
    expect.objectContaining({ code: 'PAYMENT_PROVIDER_FAILED' }),
  ]);
  const page = await user.get<{ data: { status: string }[] }>(`/api/billing/${user.spaceId}/checkouts`);
  expect(page.data.map(({ status }) => status)).toEqual(['failed']);
  expect((await buy(user)).session.status).toBe('open');
});

test('A slow payment shows as processing, and its notifications credit it once in any order', async () => {
  const user = await product.user('slow');
  const { session, checkoutId } = await buy(user);
  expect(await tell('checkout.session.completed', { ...session, status: 'complete' })).toBe('ended');
  const page = await fetch(`${product.url}/api/billing/checkout-success?session_id=${session.id}`, {
    headers: { accept: 'application/json' },
  });
  expect(await page.json()).toMatchObject({ status: 'processing', credited: false });
  const paid = stripe.pay(String(session.id));
  // The purchase's own workflow may have asked Stripe meanwhile and credited the payment.
  expect(['credited', 'unchanged']).toContain(await tell('checkout.session.async_payment_succeeded', paid));
  expect(await tell('checkout.session.completed', paid)).toBe('unchanged');
  expect(await tell('checkout.session.expired', { ...paid, status: 'expired' })).toBe('unchanged');
  expect(await balances(user)).toEqual({ available: 1000 * micro, paid: 1000 * micro });
  const list = await user.get<{ data: { id: string; status: string; url: null }[] }>(
    `/api/billing/${user.spaceId}/checkouts`,
  );
  expect(list.data).toEqual([expect.objectContaining({ id: checkoutId, status: 'paid', url: null })]);
});

test('A failed payment and an expired checkout fail their operations', async () => {
  const user = await product.user('unlucky');
  const [failed, expired] = [await buy(user), await buy(user)];
  expect(await tell('checkout.session.async_payment_failed', { ...failed.session, status: 'complete' })).toBe('ended');
  stripe.sessions.set(String(expired.session.id), Object.assign(expired.session, { status: 'expired' }));
  expect(await tell('checkout.session.expired', expired.session)).toBe('ended');
  for (const [{ operationId }, code] of [
    [failed, 'PAYMENT_FAILED'],
    [expired, 'CHECKOUT_EXPIRED'],
  ] as const) {
    const operation = await waitFor('the operation to end', async () => {
      const row = await user.get<{ status: string; error?: { code: string } }>(`/api/operations/${operationId}`);
      return row.status !== 'running' && row;
    });
    expect(operation).toMatchObject({ status: 'failed', error: { code } });
  }
  expect(await balances(user)).toEqual({});
});

test('A refund takes credits back, also before its payment is reported, and a failed refund returns them', async () => {
  const user = await product.user('refunded');
  const { session } = await buy(user);
  const paid = stripe.pay(String(session.id));
  const charge = { id: 'ch_1', payment_intent: paid.payment_intent, metadata: {} };
  stripe.refund(String(paid.payment_intent), 300);
  // The refund arrives first and shows that the payment went through.
  expect(await tell('charge.refunded', charge)).toBe('reversed');
  expect(await balances(user)).toEqual({ available: 700 * micro, paid: 700 * micro });
  expect(await tell('checkout.session.completed', paid)).toBe('unchanged');
  const second = stripe.refund(String(paid.payment_intent), 500);
  expect(await tell('charge.refunded', charge)).toBe('reversed');
  expect(await balances(user)).toEqual({ available: 200 * micro, paid: 200 * micro });
  second.status = 'failed';
  expect(await tell('refund.failed', second)).toBe('reversed');
  expect(await balances(user)).toEqual({ available: 700 * micro, paid: 700 * micro });
});

test('A dispute takes the payment back, winning it returns the credits, and an inquiry takes nothing', async () => {
  const user = await product.user('disputed');
  const { session } = await buy(user);
  const paid = stripe.pay(String(session.id));
  await tell('checkout.session.completed', paid);
  const dispute = (status: string) => ({
    id: `dp_${session.id}`,
    payment_intent: paid.payment_intent,
    amount: 1000,
    status,
  });
  expect(await tell('charge.dispute.created', dispute('warning_needs_response'))).toBe('ignored');
  expect(await tell('charge.dispute.created', dispute('needs_response'))).toBe('reversed');
  expect(await balances(user)).toEqual({});
  expect(await tell('charge.dispute.funds_withdrawn', dispute('needs_response'))).toBe('unchanged');
  expect(await tell('charge.dispute.closed', dispute('won'))).toBe('reversed');
  expect(await tell('charge.dispute.funds_reinstated', dispute('won'))).toBe('unchanged');
  expect(await balances(user)).toEqual({ available: 1000 * micro, paid: 1000 * micro });
});

test('Foreign payments and wrong amounts are recorded for the operator, and unknown kinds are acknowledged', async () => {
  const user = await product.user('odd');
  const { session } = await buy(user);
  expect(await tell('customer.created', { id: 'cus_1' })).toBe('ignored');
  expect(await tell('checkout.session.completed', { id: 'cs_unknown', payment_status: 'paid' })).toBe('unexplained');
  expect(await tell('charge.refunded', { id: 'ch_x', payment_intent: 'pi_unknown', metadata: {} })).toBe('unexplained');
  const other = { ...session, payment_status: 'paid', status: 'complete', amount_total: 1 };
  expect(await tell('checkout.session.completed', other)).toBe('unexplained');
  expect(await balances(user)).toEqual({});
});

test('Reconciliation credits an unreported payment once, and records a payment without a checkout', async () => {
  const user = await product.user('unheard');
  const { session } = await buy(user);
  stripe.pay(String(session.id));
  stripe.sessions.set('cs_foreign', {
    id: 'cs_foreign',
    status: 'complete',
    payment_status: 'paid',
    amount_total: 5,
    currency: 'usd',
  });
  const { config, database } = product.environment;
  await triggerSchedule(config, reconcileScheduleId(config.installation));
  await waitFor('the credits', async () => (await balances(user)).paid === 1000 * micro);
  await waitFor('the finding', async () => {
    const [rows] = await database.pool.query("SELECT finding FROM payment_findings WHERE subject_id = 'cs_foreign'");
    return (rows as { finding: string }[])[0]?.finding === 'PAID_SESSION_OF_NO_CHECKOUT';
  });
  stripe.sessions.delete('cs_foreign');
  expect(await tell('checkout.session.completed', session)).toBe('unchanged');
  expect(await balances(user)).toEqual({ available: 1000 * micro, paid: 1000 * micro });
});

test('Automatic top-ups charge the saved card below the threshold, up to the monthly limit', async () => {
  const user = await product.user('automatic');
  await post(user, 'setup', { initialCredits: 1 });
  const set = (body: unknown) => user.fetch(`/api/billing/${user.spaceId}/auto-top-up`, { method: 'PUT', body });
  expect((await set({ enabled: true, threshold: 5, amount: 20, monthlyLimit: 10 })).status).toBe(422);
  expect((await set({ enabled: true, threshold: 5_000, amount: 20, monthlyLimit: 50 })).status).toBe(200);
  // Two charges of 20 are within 50, a third is not.
  await waitFor('two charges', async () => (await balances(user)).paid === 4000 * micro);
  const { data } = await user.get<{ data: { id: string }[] }>(`/api/billing/${user.spaceId}/checkouts`);
  const keys = new Set(stripe.requests.map(({ idempotencyKey }) => idempotencyKey));
  expect(data.filter(({ id }) => keys.has(`charge:${id}`))).toHaveLength(2);
  const terms = { currency: 'usd', provider: 'stripe', microOf: (minor: number) => minor };
  expect(await beginAutoTopUp(product.environment.database, user.spaceId, terms)).toBeUndefined();
  // The notification of each charge credits nothing more.
  const intents = (await (await fetch(`${stripe.url}/v1/payment_intents`)).json()) as { data: Fields[] };
  for (const intent of intents.data) await tell('payment_intent.succeeded', intent);
  expect(await balances(user)).toEqual({ available: 4001 * micro, paid: 4000 * micro, granted: micro });
});

test('A declined card turns automatic top-ups off until the owner sets them again', async () => {
  stripe.card = 'declined';
  const user = await product.user('declined');
  await post(user, 'setup', {});
  const body = { enabled: true, threshold: 5, amount: 20, monthlyLimit: 100 };
  const path = `/api/billing/${user.spaceId}/auto-top-up`;
  await user.fetch(path, { method: 'PUT', body });
  const failed = async () =>
    (await user.get<{ autoTopUp: { failedAt: string | null } }>(`/api/billing/${user.spaceId}`)).autoTopUp.failedAt;
  await waitFor('the refusal', failed);
  expect(await balances(user)).toEqual({});
  stripe.card = 'good';
  await user.fetch(path, { method: 'PUT', body });
  expect(await failed()).toBeNull();
  await waitFor('the charge', async () => (await balances(user)).paid === 2000 * micro);
});
