/**
 * Credits are counted in millionths (micro-credits), as integers. The largest amount that the ledger takes is nine
 * billion credits, which a JavaScript number still holds exactly.
 */
export const microPerCredit = 1_000_000;
export const maxMicroCredits = 9_000_000_000 * microPerCredit;

/** Micro-credits of an amount as people and the API write it. */
export function toMicro(credits: number): number {
  return Math.round(credits * microPerCredit);
}

/** Credits of an amount in micro-credits, for people and the API. */
export function toCredits(micro: number): number {
  return micro / microPerCredit;
}

/** How many digits a currency has after its point, by ISO 4217: 2 for eur, 0 for jpy. */
export function digitsOf(currency: string): number {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

/** An amount in the currency's smallest unit; undefined when it has more digits than the currency, or than two. */
export function toMinor(amount: number, currency: string): number | undefined {
  const digits = digitsOf(currency);
  const allowed = 10 ** Math.min(digits, 2);
  const scaled = amount * allowed;
  // 19.99 * 100 is 1998.9999999999998: a value this close to a whole number is meant as one.
  if (Math.abs(scaled - Math.round(scaled)) > 1e-6) return undefined;
  return Math.round(scaled) * 10 ** (digits - Math.min(digits, 2));
}

/** The share of an amount that belongs to `part` of `whole`, rounded down; exact for all of it. */
export function shareOf(micro: number, part: number, whole: number): number {
  return Number((BigInt(micro) * BigInt(part)) / BigInt(whole));
}
