/** The variables that billing is read from, as config/index.ts validates them. */
interface BillingEnvironment {
  ATRIUM_ENV: 'development' | 'test' | 'production';
  ATRIUM_PAYMENTS?: 'stripe' | 'development' | 'none' | undefined;
  ATRIUM_STRIPE_SECRET_KEY?: string | undefined;
  ATRIUM_STRIPE_WEBHOOK_SECRETS: string[];
  ATRIUM_STRIPE_ADDRESS?: string | undefined;
  ATRIUM_BILLING_ENFORCED?: boolean | undefined;
  ATRIUM_BILLING_CURRENCY: string;
  ATRIUM_BILLING_CREDITS_PER_UNIT: number;
  ATRIUM_BILLING_TOP_UP_MIN: number;
  ATRIUM_BILLING_TOP_UP_MAX: number;
  ATRIUM_BILLING_INITIAL_CREDITS_MAX?: number | undefined;
  ATRIUM_BILLING_INITIAL_CREDITS_PER_USER: number;
  ATRIUM_BILLING_INITIAL_CREDITS_TOTAL: number;
  ATRIUM_BILLING_LOW_CREDITS: number;
  ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE: number;
  ATRIUM_BILLING_STORAGE_CREDITS_PER_GIB_DAY: number;
  ATRIUM_BILLING_CHECKOUT_LOOK_SECONDS: number;
  ATRIUM_BILLING_RECONCILE_MINUTES: number;
}

const microPerCredit = 1_000_000;
const defaultInitialCredits = 1_000;

/** Billing's settings. Amounts of credits are in micro-credits from here on, and say so. */
export function billingConfig(env: BillingEnvironment) {
  const mode = env.ATRIUM_PAYMENTS ?? defaultMode(env);
  const enforced = env.ATRIUM_BILLING_ENFORCED ?? mode === 'stripe';
  const micro = (credits: number) => Math.round(credits * microPerCredit);
  const digits = new Intl.NumberFormat('en', { style: 'currency', currency: env.ATRIUM_BILLING_CURRENCY });
  const minorPerUnit = 10 ** (digits.resolvedOptions().maximumFractionDigits ?? 2);
  return Object.freeze({
    mode,
    stripe: Object.freeze({
      secretKey: mode === 'stripe' ? env.ATRIUM_STRIPE_SECRET_KEY : undefined,
      /** Several while one is being replaced by another. */
      webhookSecrets: mode === 'stripe' ? env.ATRIUM_STRIPE_WEBHOOK_SECRETS : [],
      /** Absent means Stripe itself. */
      address: env.ATRIUM_STRIPE_ADDRESS,
    }),
    /** Whether somebody without credits is refused. Use is metered either way. */
    enforced,
    /** ISO 4217, lower-case as Stripe writes it. */
    currency: env.ATRIUM_BILLING_CURRENCY,
    minorPerUnit,
    microPerMinor: Math.round((env.ATRIUM_BILLING_CREDITS_PER_UNIT * microPerCredit) / minorPerUnit),
    topUp: Object.freeze({ min: env.ATRIUM_BILLING_TOP_UP_MIN, max: env.ATRIUM_BILLING_TOP_UP_MAX }),
    initialMicro: Object.freeze({
      // Where credits stand for money, whoever makes a space gets none unless the operator gives them.
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
}

/** In production nobody gets credits by clicking on a page: without Stripe's key there are no payments. */
function defaultMode(env: BillingEnvironment): 'stripe' | 'development' | 'none' {
  if (env.ATRIUM_STRIPE_SECRET_KEY !== undefined) return 'stripe';
  return env.ATRIUM_ENV === 'production' ? 'none' : 'development';
}
