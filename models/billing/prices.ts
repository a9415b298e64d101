import { microPerCredit } from './money.ts';

/** A rate as the catalogue lists it (spec §2). */
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

/** What a model costs, in micro-credits; fractions of one are kept until a call is added up. */
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

/** Which price a rate is, and its value per token or call; undefined for a rate that is not understood. */
function readRate({ label, creditsPerUnit, unit }: Rate): { price: keyof Prices; micro: number } | undefined {
  if (calls.test(unit.trim())) return { price: 'perCall', micro: creditsPerUnit * microPerCredit };
  const [matched, count = '', factor = ''] = tokens.exec(unit.trim()) ?? [];
  if (matched === undefined) return undefined;
  const micro = (creditsPerUnit * microPerCredit) / (Number(count || 1) * (factors[factor.toLowerCase()] ?? 1));
  // Every provider counts cache writes differently, so they are billed as input.
  if (/cache/i.test(label)) return /writ|creat/i.test(label) ? undefined : { price: 'cachedInput', micro };
  if (/reason|think/i.test(label)) return { price: 'reasoning', micro };
  if (/out|completion/i.test(label)) return { price: 'output', micro };
  if (/in|prompt/i.test(label)) return { price: 'input', micro };
  return undefined;
}

/**
 * Reads a model's rates. A rate's label (input, cached, output, reasoning) says which of a call's counts it is for;
 * cached input costs as much as input where it has no rate of its own, and reasoning as much as output. A unit such as
 * `request` is counted once per call.
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

/** Rates that {@link pricesOf} ignores: a call cannot be counted by their label or unit. */
export function unreadRates<R extends Rate>(rates: readonly R[]): R[] {
  return rates.filter((rate) => rate.creditsPerUnit > 0 && readRate(rate) === undefined);
}

export function isFree(prices: Prices): boolean {
  return Object.values(prices).every((price) => price === 0);
}

/** What a call costs, in whole micro-credits, rounded up. */
export function costOf(prices: Prices, usage: TokenCount): number {
  const cached = Math.min(usage.cachedInputTokens, usage.inputTokens);
  const reasoning = Math.min(usage.reasoningTokens, usage.outputTokens);
  const cost =
    prices.perCall +
    (usage.inputTokens - cached) * prices.input +
    cached * prices.cachedInput +
    (usage.outputTokens - reasoning) * prices.output +
    reasoning * prices.reasoning;
  // Adding up fractions of a price sometimes ends slightly above a whole number.
  return Math.ceil(cost - 1e-6);
}

/** The highest cost of a call: no input cached, all output of the more expensive kind. */
export function ceilingOf(prices: Prices, inputTokens: number, outputTokens: number): number {
  const input = Math.max(prices.input, prices.cachedInput);
  return Math.ceil(prices.perCall + inputTokens * input + outputTokens * dearestOutput(prices) - 1e-6);
}

/** How many tokens of output an amount is certain to pay for, after the input. */
export function outputTokensFor(prices: Prices, inputTokens: number, micro: number): number {
  const each = dearestOutput(prices);
  return each === 0 ? Number.MAX_SAFE_INTEGER : Math.floor((micro - ceilingOf(prices, inputTokens, 0)) / each);
}

function dearestOutput(prices: Prices): number {
  return Math.max(prices.output, prices.reasoning);
}
