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
const factors: Record<string, number> = { '': 1, k: 1_000, m: 1_000_000 };

/**
 * Reads a model's rates. Which of a call's counts a rate is for is said by its label (input, cached, output, reasoning); cached input costs what
 * input does where it has no rate of its own, and reasoning what output does. A unit such as `request` is counted once a call.
 */
export function pricesOf(rates: readonly Rate[]): Prices {
  const found: Partial<Prices> = {};
  for (const { label, creditsPerUnit, unit } of rates) {
    const [matched, count = '', factor = ''] = tokens.exec(unit.trim()) ?? [];
    if (matched === undefined) {
      if (/^(request|call)s?$/i.test(unit.trim())) found.perCall = creditsPerUnit * microPerCredit;
      continue;
    }
    const each = (creditsPerUnit * microPerCredit) / (Number(count || 1) * (factors[factor.toLowerCase()] ?? 1));
    if (/cache/i.test(label)) found.cachedInput = each;
    else if (/reason|think/i.test(label)) found.reasoning = each;
    else if (/out/i.test(label)) found.output = each;
    else if (/in/i.test(label)) found.input = each;
  }
  const { input = 0, output = 0, perCall = 0 } = found;
  return { input, output, perCall, cachedInput: found.cachedInput ?? input, reasoning: found.reasoning ?? output };
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
  // Fractions of a price, added up, end a hair above a whole number now and then.
  return Math.ceil(cost - 1e-6);
}

/** The dearest that a call can be: its input not cached, its output all of the dearer kind. */
export function ceilingOf(prices: Prices, inputTokens: number, outputTokens: number): number {
  const input = Math.max(prices.input, prices.cachedInput);
  return Math.ceil(prices.perCall + inputTokens * input + outputTokens * dearestOutput(prices) - 1e-6);
}

/** How many tokens of output an amount surely pays for, after the input. */
export function outputTokensFor(prices: Prices, inputTokens: number, micro: number): number {
  const each = dearestOutput(prices);
  return each === 0 ? Number.MAX_SAFE_INTEGER : Math.floor((micro - ceilingOf(prices, inputTokens, 0)) / each);
}

function dearestOutput(prices: Prices): number {
  return Math.max(prices.output, prices.reasoning);
}
