import { loadLaunchConfig } from '../../config/launch.ts';
import { PaymentProviderError } from '../../integrations/billing/provider.ts';
import { createStripeProvider, type StripeProvider } from '../../integrations/billing/stripe.ts';
import { choosePort } from '../../stack/ports.ts';
import { getProgram } from '../../stack/programs.ts';
import { start, type TestProcess } from '../support/processes.ts';
import { createStackContext } from '../support/stackContext.ts';
import { waitFor } from '../support/waitFor.ts';

// Checks each of Atrium's requests to Stripe against Stripe's own description of its API: stripe-mock answers 400 to an
// unknown field.

const stripeMock = {
  ...{ name: 'stripe-mock', title: 'stripe-mock', version: '0.203.0' },
  ...{ source: { module: 'github.com/stripe/stripe-mock' }, buildTime: 'about 10 seconds' },
};

let mock: TestProcess;
let stripe: StripeProvider;
beforeAll(async () => {
  const { cacheDir } = loadLaunchConfig(process.env);
  const program = await getProgram(createStackContext({ cacheDir }), stripeMock);
  const port = await choosePort();
  mock = start(program, ['-http-port', String(port)]);
  const address = new URL(`http://127.0.0.1:${port}`);
  stripe = createStripeProvider({ secretKey: 'sk_test_123', address });
  await waitFor('stripe-mock to answer', () =>
    fetch(address).then(
      () => true,
      () => false,
    ),
  );
});
afterAll(async () => {
  mock.child.kill('SIGTERM');
  await mock.exited;
});

const checkout = {
  ...{ checkoutId: 'chk_1', spaceId: 'spc_1', customerId: 'cus_1', amountMinor: 1_250, currency: 'usd' },
  ...{ successUrl: 'https://example.org/s?session_id={CHECKOUT_SESSION_ID}', cancelUrl: 'https://example.org/c' },
  expiresAt: new Date(Date.now() + 3_600_000),
};

test('Stripe accepts a customer with and without an address', async () => {
  const ofSpace = { spaceId: 'spc_1', name: 'A space' };
  expect(await stripe.createCustomer({ ...ofSpace, email: undefined })).toEqual({ id: expect.any(String) });
  expect(await stripe.createCustomer({ ...ofSpace, email: 'a@example.org' })).toEqual({ id: expect.any(String) });
});

test('Stripe accepts the requests to create, read, find, expire and list checkout sessions', async () => {
  const { id } = await stripe.createCheckout(checkout);
  expect(await stripe.findCheckout(id)).toMatchObject({ sessionId: expect.any(String), paid: expect.any(Boolean) });
  expect(await stripe.checkoutOfPayment('pi_1')).toMatchObject({ sessionId: expect.any(String) });
  await stripe.expireCheckout(id);
  expect((await Array.fromAsync(stripe.checkoutsSince(new Date(0)))).length).toBeGreaterThan(0);
  await stripe.checkAccess();
});

test('Stripe accepts the requests for refunds and for a charge of a saved card', async () => {
  expect((await stripe.refundsOf('pi_1'))[0]).toEqual({
    ...{ id: expect.any(String), amountMinor: expect.any(Number), returned: expect.any(Boolean) },
  });
  const charged = await stripe.charge({ ...checkout, checkoutId: 'chk_2' });
  expect(charged).toEqual({ status: expect.stringMatching(/^(paid|refused)$/), paymentId: expect.any(String) });
  await Array.fromAsync(stripe.chargesSince(new Date(0)));
});

test('a request that Stripe refuses fails permanently', async () => {
  const answer = stripe.createCheckout({ ...checkout, amountMinor: 'much' as unknown as number });
  await expect(answer).rejects.toBeInstanceOf(PaymentProviderError);
  await expect(answer).rejects.toMatchObject({ permanent: true });
});
