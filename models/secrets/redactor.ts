import { SecretAutomaton } from '../../telemetry/secretAutomaton.ts';
import { formsWithin, redacted } from '../../telemetry/secretForms.ts';
import { atOnce, inSlices } from '../../telemetry/slices.ts';
import { type ByteForms, byteForms, StreamMask } from '../../telemetry/streamMask.ts';
import { redactText, StreamRedactor } from '../../telemetry/streamRedactor.ts';

/** Removes a space's secret values from output before it is shown or stored. */
export interface Redactor {
  /** True when there are no secrets to look for. */
  readonly isEmpty: boolean;
  text(text: string): string;
  /** The same for all texts, keys and numbers in a JSON value. */
  json(value: unknown): unknown;
  /** The same for one text that arrives in pieces. */
  stream(): StreamRedactor;
  /** The forms to look for in the bytes that programs print. */
  readonly bytes: ByteForms;
  /** Overwrites them in one stream of bytes. */
  mask(options?: { beginsCut?: boolean }): StreamMask;
}

/**
 * How many forms a space has beside its plain values. Named secrets, which editors set, and values typed into forms
 * have separate limits, so neither takes the other's room. A password has 10 to 60 forms, a private key 1,200.
 */
export const mostForms = { named: 24_000, typed: 10_000 };

/** A redactor for the forms of these values, built in slices. */
export function redactorFor(values: readonly string[]): Promise<Redactor> {
  function* work() {
    return yield* buildRedactor(yield* formsWithin([values], mostForms.typed));
  }
  return inSlices(work());
}

/** A redactor for a few texts, built at once. */
export function createRedactor(texts: Iterable<string>): Redactor {
  return atOnce(buildRedactor([...texts]));
}

/**
 * A redactor for these texts, which may contain each other. Its time depends on the text that it reads, not on the
 * number of secrets. Yields the number of characters that it has worked on.
 */
export function* buildRedactor(forms: readonly string[]): Generator<number, Redactor> {
  const automaton = yield* SecretAutomaton.building(forms);
  const bytes = yield* byteForms(forms, automaton);
  const { isEmpty } = automaton;
  const clean = (text: string) => redactText(automaton, text);

  function redactJson(value: unknown): unknown {
    if (typeof value === 'string') return clean(value);
    if (typeof value === 'number') return clean(String(value)) === String(value) ? value : redacted;
    if (Array.isArray(value)) return value.map(redactJson);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [clean(key), redactJson(child)]));
  }

  return {
    isEmpty,
    text: clean,
    json: (value) => (isEmpty ? value : redactJson(value)),
    stream: () => new StreamRedactor(automaton),
    bytes,
    mask: (options) => new StreamMask(bytes, options),
  };
}
