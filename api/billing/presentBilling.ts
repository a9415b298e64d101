import type { Config } from '../../config/index.ts';
import type { Caps } from '../../models/billing/caps.ts';
import type { Checkout } from '../../models/billing/checkouts.ts';
import { accounts, type Balances } from '../../models/billing/ledger.ts';
import { toCredits } from '../../models/billing/money.ts';
import type { LedgerRecord } from '../../models/billing/report.ts';
import type { AutoTopUp, BillingSettings } from '../../models/billing/settings.ts';
import type { AnswerOf } from '../frame/answer.ts';

const optionalCredits = (micro: number | null) => (micro === null ? null : toCredits(micro));

export function presentCaps(caps: Caps) {
  return {
    perTurn: optionalCredits(caps.perTurn),
    perDay: optionalCredits(caps.perDay),
    perMemberPerDay: optionalCredits(caps.perMemberPerDay),
  };
}

export function presentAutoTopUp(auto: AutoTopUp, minorPerUnit: number) {
  const units = (minor: number | null) => (minor === null ? null : minor / minorPerUnit);
  return {
    enabled: auto.enabled,
    threshold: optionalCredits(auto.threshold),
    amount: units(auto.amountMinor),
    monthlyLimit: units(auto.monthlyLimitMinor),
    failedAt: auto.failedAt?.toISOString() ?? null,
  };
}

export function presentBilling(
  balances: Balances,
  settings: BillingSettings & { setUp: boolean },
  { billing }: Pick<Config, 'billing'>,
) {
  const { available, ...rest } = Object.fromEntries(
    accounts.map((account) => [account, toCredits(balances[account])]),
  ) as Record<(typeof accounts)[number], number>;
  const { min, max } = billing.topUp;
  return {
    spaceId: balances.spaceId,
    setUp: settings.setUp,
    balance: available,
    ...rest,
    currency: billing.currency,
    creditsPerUnit: toCredits(billing.microPerMinor * billing.minorPerUnit),
    lowBalance: balances.available < billing.lowBalanceMicro,
    enforced: billing.enforced,
    topUp: { min, max, provider: billing.mode },
    caps: presentCaps(settings.caps),
    autoTopUp: presentAutoTopUp(settings.autoTopUp, billing.minorPerUnit),
  };
}

export function presentCheckout(checkout: Checkout, { billing }: Pick<Config, 'billing'>) {
  const { id, kind, status, userId, amountMinor, currency, microCredits, url, operationId, createdAt, endedAt } =
    checkout;
  return {
    id,
    kind,
    status,
    userId,
    amount: amountMinor / billing.minorPerUnit,
    currency,
    credits: toCredits(microCredits),
    // A checkout that has ended can no longer be paid.
    url: endedAt === null ? url : null,
    operationId,
    createdAt: createdAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  };
}

/** The answer for a buyer who returns from the payment page, paid or not. */
export type CheckoutResult = AnswerOf<'checkoutSuccess'>;

export function presentCheckoutResult(
  checkout: Checkout | undefined,
  { billing }: Pick<Config, 'billing'>,
): CheckoutResult {
  if (checkout === undefined) return { status: 'unknown', credited: false };
  const { status, amountMinor, currency, microCredits } = checkout;
  return {
    status: status === 'creating' ? 'open' : status,
    credited: status === 'paid',
    amount: amountMinor / billing.minorPerUnit,
    currency,
    credits: toCredits(microCredits),
  };
}

export function presentLedgerRecord(record: LedgerRecord) {
  const { id, kind, sourceId, userId, turnId, detail, createdAt, lines } = record;
  return {
    id,
    kind,
    sourceId,
    userId,
    turnId,
    detail,
    createdAt: createdAt.toISOString(),
    entries: lines.map(({ account, amount, balanceAfter }) => ({
      account,
      amountMicroCredits: amount,
      balanceMicroCredits: balanceAfter,
    })),
  };
}

export const csvHeader =
  'time,transaction,kind,source,account,amount_micro_credits,balance_micro_credits,user,turn\r\n';

/** A record's lines of the CSV export. Each field is ours or quoted, and none begins like a spreadsheet formula. */
export function csvLines({ id, kind, sourceId, userId, turnId, createdAt, lines }: LedgerRecord): string {
  return lines
    .map(({ account, amount, balanceAfter }) =>
      [createdAt.toISOString(), id, kind, quoted(sourceId), account, amount, balanceAfter, userId, turnId]
        .map((field) => field ?? '')
        .join(','),
    )
    .map((line) => `${line}\r\n`)
    .join('');
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
