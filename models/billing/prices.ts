import { microPerCredit } from './money.ts';

/** A rate as the catalogue lists it. */
export interface Rate {
  label: string;
  creditsPerUnit: number;
  unit: string;
}

export interface TokenCount {
  inputTokens: number;
  /** Part of the input. */
  cachedInputTokens: number;
  outputTokens: number;
  /** Part of the output. */
  reasoningTokens: number;
}

/** A model's prices in micro-credits. Fractions are kept until a call is added up. */
export interface Prices {
  input: number;
  cachedInput: number;
  output: number;
  reasoning: number;
  perCall: number;
}

const tokens = /^(\d*)\s*([km]?)\s*tokens?$/i;
const calls = /^(request|call)s?$/i;
const factors: Record<string, number> = { '': 1, k: 1_000, m: 1_000_000 };

/** The price that a rate sets, and its value per token or call. Undefined if the rate is not understood. */
function readRate({ label, creditsPerUnit, unit }: Rate): { price: keyof Prices; micro: number } | undefined {
  if (calls.test(unit.trim())) return { price: 'perCall', micro: creditsPerUnit * microPerCredit };
  const [matched, count = '', factor = ''] = tokens.exec(unit.trim()) ?? [];
  if (matched === undefined) return undefined;
  const micro = (creditsPerUnit * microPerCredit) / (Number(count || 1) * (factors[factor.toLowerCase()] ?? 1));
  // Providers count cache writes in different ways, so they are billed as input.
  if (/cache/i.test(label)) return /writ|creat/i.test(label) ? undefined : { price: 'cachedInput', micro };
  if (/reason|think/i.test(label)) return { price: 'reasoning', micro };
  if (/out|completion/i.test(label)) return { price: 'output', micro };
  if (/in|prompt/i.test(label)) return { price: 'input', micro };
  return undefined;
}

/**
 * Reads a model's rates. A rate's label (input, cached, output, reasoning) says which count it is for. Cached input
 * without a rate of its own costs as much as input, and reasoning as much as output. A unit such as `request` is
 * counted once per call.
 */
export function pricesOf(rates: readonly Rate[]): Prices {
  const found: Partial<Prices> = {};
  for (const rate of rates) {
    const read = readRate(rate);
    if (read !== undefined) found[read.price] = read.micro;
  }
  const { input = 0, output = 0, perCall = 0 } = found;
  return { input, output, perCall, cachedInput: found.cachedInput ?? input, reasoning: found.reasoning ?? output };
}

/** Rates that {@link pricesOf} ignores, since it does not understand their label or unit. */
export function unreadRates<R extends Rate>(rates: readonly R[]): R[] {
  return rates.filter((rate) => rate.creditsPerUnit > 0 && readRate(rate) === undefined);
}

export function isFree(prices: Prices): boolean {
  return Object.values(prices).every((price) => price === 0);
}

/** The cost of a call in whole micro-credits, rounded up. */
export function costOf(prices: Prices, usage: TokenCount): number {
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
  const reasoning = Math.min(usage.reasoningTokens, usage.outputTokens);
  const cost =
    prices.perCall +
    (usage.inputTokens - cached) * prices.input +
    cached * prices.cachedInput +
    (usage.outputTokens - reasoning) * prices.output +
    reasoning * prices.reasoning;
  // Sums of fractional prices sometimes end slightly above a whole number.
  return Math.ceil(cost - 1e-6);
}

/** The highest cost of a call: no cached input, all output of the more expensive kind. */
export function ceilingOf(prices: Prices, inputTokens: number, outputTokens: number): number {
  const input = Math.max(prices.input, prices.cachedInput);
  return Math.ceil(prices.perCall + inputTokens * input + outputTokens * dearestOutput(prices) - 1e-6);
}

/** How many output tokens an amount is certain to pay for, after the input. */
export function outputTokensFor(prices: Prices, inputTokens: number, micro: number): number {
  const each = dearestOutput(prices);
  return each === 0 ? Number.MAX_SAFE_INTEGER : Math.floor((micro - ceilingOf(prices, inputTokens, 0)) / each);
}

function dearestOutput(prices: Prices): number {
  return Math.max(prices.output, prices.reasoning);
}
