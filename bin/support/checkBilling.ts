import type { Config } from '../../config/index.ts';
import { createStripeProvider } from '../../integrations/billing/stripe.ts';
import { createCatalogue } from '../../integrations/chat/catalogue.ts';
import { unreadRates } from '../../models/billing/prices.ts';
import { type CheckResult, off, ok, wrong } from './check.ts';

/** Whether credits can be bought as configured: Stripe accepts the key, and its notifications can reach us. */
export async function checkPayments({ billing, http, env }: Config): Promise<CheckResult> {
  const { mode, stripe } = billing;
  const refuses = billing.enforced ? 'who has no credits is refused' : 'nobody is refused';
  if (mode === 'none') return off(`no provider, so nothing can be bought; ${refuses}`);
  if (mode === 'development') return ok(`the development page, no money moves; ${refuses}`);
  if (stripe.secretKey === undefined) return wrong('ATRIUM_STRIPE_SECRET_KEY is not set');
  const isTestKey = /^(sk|rk)_test_/.test(stripe.secretKey);
  if (env === 'production' && isTestKey) {
    return wrong('ATRIUM_STRIPE_SECRET_KEY is of Stripe’s test mode: nobody really pays. Set the live one');
  }
  if (!isTestKey && !http.publicUrl.startsWith('https:')) {
    return wrong(`ATRIUM_PUBLIC_URL is ${http.publicUrl}: Stripe sends notifications and people back to https only`);
  }
  const address = stripe.address === undefined ? undefined : new URL(stripe.address);
  await createStripeProvider({ secretKey: stripe.secretKey, address }).checkAccess();
  const secrets = stripe.webhookSecrets.length;
  return ok(`Stripe takes the key${isTestKey ? ' (of its test mode)' : ''}, ${secrets} webhook secrets; ${refuses}`);
}

/** Whether every rate of the catalogue can be billed. A rate with an unknown unit would be free without notice. */
export function checkPrices({ llm, billing }: Config): CheckResult {
  const models = createCatalogue(llm).list();
  const unread = models.flatMap(({ id, pricingRates }) =>
    unreadRates(pricingRates).map(({ label, unit }) => `${id} (${label}, per ${unit})`),
  );
  if (unread.length > 0) {
    return wrong(
      `not billed: ${unread.join('; ')}. Labels are input, cached, output, reasoning; units 1M tokens, request`,
    );
  }
  const free = models.filter(({ pricingRates }) => pricingRates.every(({ creditsPerUnit }) => creditsPerUnit === 0));
  const names = free.map(({ id }) => id).join(', ');
  return ok(
    `of ${models.length} ${models.length === 1 ? 'model' : 'models'}${free.length > 0 && billing.enforced ? `; free of charge: ${names}` : ''}`,
  );
}
