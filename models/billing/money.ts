/**
 * Credits are counted as integers in millionths (micro-credits). The ledger takes at most nine billion credits, which a
 * JavaScript number holds exactly.
 */
export const microPerCredit = 1_000_000;
export const maxMicroCredits = 9_000_000_000 * microPerCredit;

/** Converts credits, as people and the API write them, to micro-credits. */
export function toMicro(credits: number): number {
  return Math.round(credits * microPerCredit);
}

/** Converts micro-credits to credits, for people and the API. */
export function toCredits(micro: number): number {
  return micro / microPerCredit;
}

/** A currency's digits after the decimal point, by ISO 4217: 2 for eur, 0 for jpy. */
function digitsOf(currency: string): number {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

/** An amount in the currency's smallest unit. Undefined if it has more decimals than the currency has, or than two. */
export function toMinor(amount: number, currency: string): number | undefined {
  const digits = digitsOf(currency);
  const allowed = 10 ** Math.min(digits, 2);
  const scaled = amount * allowed;
  // 19.99 * 100 is 1998.9999999999998. A value this close to a whole number is meant as one.
  if (Math.abs(scaled - Math.round(scaled)) > 1e-6) return undefined;
  return Math.round(scaled) * 10 ** (digits - Math.min(digits, 2));
}

/** The share of an amount for `part` of `whole`, rounded down. Exact for the whole. */
export function shareOf(micro: number, part: number, whole: number): number {
  return Number((BigInt(micro) * BigInt(part)) / BigInt(whole));
}
