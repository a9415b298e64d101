import { z } from 'zod';
import { ConfigError, requireBeside } from './errors.ts';
import { amount, bool, integer, list, webAddress } from './kinds.ts';

const currencies = new Set(Intl.supportedValuesOf('currency').map((code) => code.toLowerCase()));

export const billingSettings = z.object({
  ATRIUM_PAYMENTS: z.enum(['stripe', 'development', 'none']).optional(),
  ATRIUM_STRIPE_SECRET_KEY: z.string().min(1).optional(),
  ATRIUM_STRIPE_WEBHOOK_SECRETS: list.default([]),
  ATRIUM_STRIPE_ADDRESS: webAddress.optional(),
  ATRIUM_BILLING_ENFORCED: bool.optional(),
  ATRIUM_BILLING_CURRENCY: z
    .string()
    .refine((code) => currencies.has(code), 'a currency of ISO 4217 in lower-case letters, such as usd')
    .default('usd'),
  ATRIUM_BILLING_CREDITS_PER_UNIT: integer(1, 1_000_000).default(100),
  ATRIUM_BILLING_TOP_UP_MIN: amount.default(5),
  ATRIUM_BILLING_TOP_UP_MAX: amount.default(1_000),
  ATRIUM_BILLING_INITIAL_CREDITS_MAX: amount.optional(),
  ATRIUM_BILLING_INITIAL_CREDITS_PER_USER: amount.default(5_000),
  ATRIUM_BILLING_INITIAL_CREDITS_TOTAL: amount.default(1_000_000),
  ATRIUM_BILLING_LOW_CREDITS: amount.default(100),
  ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE: amount.default(0),
  ATRIUM_BILLING_STORAGE_CREDITS_PER_GIB_DAY: amount.default(0),
  ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: integer(1, 3_600).default(60),
  ATRIUM_BILLING_RECONCILE_MINUTES: integer(1, 1_440).default(60),
});

/** The input of billing's settings: its own variables and the kind of installation. */
type BillingEnvironment = z.infer<typeof billingSettings> & { ATRIUM_ENV: 'development' | 'test' | 'production' };

const microPerCredit = 1_000_000;
const defaultInitialCredits = 1_000;

/** Billing's settings. Amounts in micro-credits have `micro` in their names. */
export function billingConfig(env: BillingEnvironment) {
  const mode = env.ATRIUM_PAYMENTS ?? defaultMode(env);
  const enforced = env.ATRIUM_BILLING_ENFORCED ?? mode === 'stripe';
  const micro = (credits: number) => Math.round(credits * microPerCredit);
  const digits = new Intl.NumberFormat('en', { style: 'currency', currency: env.ATRIUM_BILLING_CURRENCY });
  const minorPerUnit = 10 ** (digits.resolvedOptions().maximumFractionDigits ?? 2);
  const billing = Object.freeze({
    mode,
    stripe: Object.freeze({
      secretKey: mode === 'stripe' ? env.ATRIUM_STRIPE_SECRET_KEY : undefined,
      /** Several while one is being replaced. */
      webhookSecrets: mode === 'stripe' ? env.ATRIUM_STRIPE_WEBHOOK_SECRETS : [],
      /** Undefined means Stripe itself. */
      address: env.ATRIUM_STRIPE_ADDRESS,
    }),
    /** Whether users without credits are refused. Use is metered either way. */
    enforced,
    /** ISO 4217, lower-case as Stripe writes it. */
    currency: env.ATRIUM_BILLING_CURRENCY,
    minorPerUnit,
    microPerMinor: Math.round((env.ATRIUM_BILLING_CREDITS_PER_UNIT * microPerCredit) / minorPerUnit),
    topUp: Object.freeze({ min: env.ATRIUM_BILLING_TOP_UP_MIN, max: env.ATRIUM_BILLING_TOP_UP_MAX }),
    initialMicro: Object.freeze({
      // Where credits stand for money, a new space gets none unless the operator grants them.
      perSpace: micro(env.ATRIUM_BILLING_INITIAL_CREDITS_MAX ?? (enforced ? 0 : defaultInitialCredits)),
      perUser: micro(env.ATRIUM_BILLING_INITIAL_CREDITS_PER_USER),
      perInstallation: micro(env.ATRIUM_BILLING_INITIAL_CREDITS_TOTAL),
    }),
    lowBalanceMicro: micro(env.ATRIUM_BILLING_LOW_CREDITS),
    computerCreditsPerMinute: env.ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE,
    storageCreditsPerGibDay: env.ATRIUM_BILLING_STORAGE_CREDITS_PER_GIB_DAY,
    checkoutLookMs: env.ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS * 1_000,
    reconcileMinutes: env.ATRIUM_BILLING_RECONCILE_MINUTES,
  });
  if (billing.mode === 'stripe') {
    requireBeside('ATRIUM_PAYMENTS=stripe', 'ATRIUM_STRIPE_SECRET_KEY', env.ATRIUM_STRIPE_SECRET_KEY);
    if (billing.stripe.webhookSecrets.length === 0) {
      throw new ConfigError('ATRIUM_STRIPE_WEBHOOK_SECRETS is not set: without it no payment is ever credited.');
    }
  }
  if (billing.topUp.min > billing.topUp.max) {
    throw new ConfigError('ATRIUM_BILLING_TOP_UP_MIN is more than ATRIUM_BILLING_TOP_UP_MAX: nothing could be bought.');
  }
  return billing;
}

/** Without Stripe's key, production has no payments: a click on a page must not create credits. */
function defaultMode(env: BillingEnvironment): 'stripe' | 'development' | 'none' {
  if (env.ATRIUM_STRIPE_SECRET_KEY !== undefined) return 'stripe';
  return env.ATRIUM_ENV === 'production' ? 'none' : 'development';
}
