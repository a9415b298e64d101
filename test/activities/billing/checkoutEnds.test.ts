import { audit } from '../../../models/billing/audit.ts';
import { findCheckout } from '../../../models/billing/checkouts.ts';
import { reconcileScheduleId } from '../../../temporal/workflowIds.ts';
import { balancesOf, expectBooksInOrder } from '../../builders/billing.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { type FakeStripe, type Fields, startFakeStripe } from '../../fakes/stripeServer.ts';
import { triggerSchedule } from '../../replay/histories.ts';
import { waitFor } from '../../support/waitFor.ts';

// Every purchase ends, even when Stripe reports something unexplained. The operator gets one finding for it.

let stripe: FakeStripe;
let product: TestProduct;
beforeAll(async () => {
  stripe = await startFakeStripe();
  product = await buildProduct({ ...stripe.environment, ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: '1' });
});
afterAll(async () => {
  await expectBooksInOrder(product.environment.database);
  await product.close();
  await stripe.stop();
});

interface Bought {
  session: Fields;
  sessionId: string;
  checkoutId: string;
  operationId: string;
}

async function buy(user: ChatUser): Promise<Bought> {
  const path = `/api/billing/${user.spaceId}/top-up`;
  const answer = await user.fetch(path, { method: 'POST', body: { amount: 10 } });
  const { url, checkoutId = '', operationId = '' } = (await answer.json()) as Record<string, string>;
  const sessionId = url?.split('/').at(-1) ?? '';
  return { session: stripe.sessions.get(sessionId) ?? {}, sessionId, checkoutId, operationId };
}

async function endOf(user: ChatUser, { checkoutId, operationId }: Bought) {
  const operation = await waitFor('the end of the purchase', async () => {
    const found = await user.get<{ status: string; error: { code: string } | null }>(`/api/operations/${operationId}`);
    return found.status !== 'running' && found;
  });
  const checkout = await findCheckout(product.environment.database, 'id', checkoutId);
  return [checkout?.status, operation.status, operation.error?.code];
}

async function findingsOf(subjectId: string): Promise<string[]> {
  const { findings } = await audit(product.environment.database);
  return findings.filter((finding) => finding.subjectId === subjectId).map(({ finding }) => finding);
}

const passTime = (checkoutId: string, days: number) =>
  product.environment.database.pool.query('UPDATE billing_checkouts SET expires_at = ? WHERE id = ?', [
    new Date(Date.now() - days * 86_400_000),
    checkoutId,
  ]);

test('The look of a purchase that was paid with another amount ends it as mispaid and credits nothing', async () => {
  const user = await product.user('looked');
  const bought = await buy(user);
  Object.assign(stripe.pay(bought.sessionId), { amount_total: 1 });
  expect(await endOf(user, bought)).toEqual(['mispaid', 'failed', 'PAID_OTHER_AMOUNT']);
  expect(await findingsOf(bought.sessionId)).toEqual(['PAID_OTHER_AMOUNT']);
  expect(await balancesOf(product.environment.database, user.spaceId)).toEqual({});
  const page = await fetch(`${product.url}/api/billing/checkout-success?session_id=${bought.sessionId}`, {
    headers: { accept: 'application/json' },
  });
  expect(await page.json()).toMatchObject({ status: 'mispaid', credited: false });
});

test('A notification and the reconciliation record a payment once, under the same subject', async () => {
  const user = await product.user('told');
  const bought = await buy(user);
  const paid = Object.assign(stripe.pay(bought.sessionId), { amount_total: 1 });
  await stripe.notify(product.url, 'checkout.session.completed', paid, 'evt_other_amount');
  expect(await endOf(user, bought)).toEqual(['mispaid', 'failed', 'PAID_OTHER_AMOUNT']);
  await stripe.notify(
    product.url,
    'checkout.session.completed',
    { id: 'cs_nobody', payment_status: 'paid' },
    'evt_nobody',
  );
  stripe.sessions.set('cs_nobody', {
    id: 'cs_nobody',
    status: 'complete',
    payment_status: 'paid',
    amount_total: 1,
    currency: 'usd',
  });
  const { config } = product.environment;
  await triggerSchedule(config, reconcileScheduleId(config.installation));
  await waitFor('the finding', async () => (await findingsOf('cs_nobody')).length > 0);
  expect(await findingsOf('cs_nobody')).toEqual(['PAID_SESSION_OF_NO_CHECKOUT']);
  expect(await findingsOf(bought.sessionId)).toEqual(['PAID_OTHER_AMOUNT']);
  for (const event of ['evt_other_amount', 'evt_nobody']) expect(await findingsOf(event)).toEqual([]);
});

test('A late payment of the right amount is credited, even after the checkout ended as mispaid', async () => {
  const user = await product.user('late');
  const bought = await buy(user);
  const paid = Object.assign(stripe.pay(bought.sessionId), { amount_total: 1 });
  expect(await endOf(user, bought)).toEqual(['mispaid', 'failed', 'PAID_OTHER_AMOUNT']);
  Object.assign(paid, { amount_total: 1_000 });
  await stripe.notify(product.url, 'checkout.session.async_payment_succeeded', paid);
  await waitFor('the credits', async () => {
    return (await balancesOf(product.environment.database, user.spaceId)).paid === 1_000_000_000;
  });
});

test.each([
  ['is unknown to the provider', 2, 'expired', 'CHECKOUT_EXPIRED', 'CHECKOUT_UNKNOWN_TO_PROVIDER'],
  ['was completed and never paid', 22, 'failed', 'PAYMENT_FAILED', 'PAYMENT_NEVER_CAME'],
])('A checkout whose session %s ends after a time limit, with a finding', async (what, days, status, code, finding) => {
  const user = await product.user('forgotten');
  const bought = await buy(user);
  if (what.startsWith('is unknown')) stripe.sessions.delete(bought.sessionId);
  else Object.assign(bought.session, { status: 'complete', payment_status: 'unpaid' });
  await passTime(bought.checkoutId, days);
  expect(await endOf(user, bought)).toEqual([status, 'failed', code]);
  expect(await findingsOf(bought.sessionId)).toEqual([finding]);
});
