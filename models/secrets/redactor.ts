import { redacted } from '../../telemetry/secretForms.ts';
import { compilePattern, type Pattern, StreamRedactor } from './streamRedactor.ts';

/** Takes a space's secret values out of what is about to be shown or stored. */
export interface Redactor {
  /** There is nothing to look for. */
  readonly isEmpty: boolean;
  text(text: string): string;
  /** The same for all texts, keys and numbers in a JSON value. */
  json(value: unknown): unknown;
  /** The same for one text that comes in pieces. */
  stream(): StreamRedactor;
}

/** A redactor for these texts, whichever of them is in the other. */
export function createRedactor(forms: Iterable<string>): Redactor {
  // The longest first: what is left of one would tell about it.
  const texts = [...new Set(forms)].sort((a, b) => b.length - a.length);
  let byFirst: Map<string, Pattern[]> | undefined;

  function patterns(): Map<string, Pattern[]> {
    if (byFirst !== undefined) return byFirst;
    byFirst = new Map();
    for (const text of texts) {
      const first = text[0] ?? '';
      byFirst.set(first, [...(byFirst.get(first) ?? []), compilePattern(text)]);
    }
    return byFirst;
  }

  function redactText(text: string): string {
    let clean = text;
    for (const secret of texts) if (clean.includes(secret)) clean = clean.replaceAll(secret, redacted);
    return clean;
  }

  function redactJson(value: unknown): unknown {
    if (typeof value === 'string') return redactText(value);
    if (typeof value === 'number') return redactText(String(value)) === String(value) ? value : redacted;
    if (Array.isArray(value)) return value.map(redactJson);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [redactText(key), redactJson(child)]));
  }

  const isEmpty = texts.length === 0;
  return {
    isEmpty,
    text: redactText,
    json: (value) => (isEmpty ? value : redactJson(value)),
    stream: () => new StreamRedactor(patterns()),
  };
}
