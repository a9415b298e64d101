import { SecretAutomaton } from '../../telemetry/secretAutomaton.ts';
import { redacted } from '../../telemetry/secretForms.ts';
import { type ByteForms, byteForms, StreamMask } from '../../telemetry/streamMask.ts';
import { redactText, StreamRedactor } from '../../telemetry/streamRedactor.ts';

/** Removes a space's secret values from what is about to be shown or stored. */
export interface Redactor {
  /** There is nothing to look for. */
  readonly isEmpty: boolean;
  text(text: string): string;
  /** The same for all texts, keys and numbers in a JSON value. */
  json(value: unknown): unknown;
  /** The same for one text that comes in pieces. */
  stream(): StreamRedactor;
  /** What is looked for in the bytes that programs put out. */
  readonly bytes: ByteForms;
  /** Writes over them in one stream of bytes. */
  mask(options?: { beginsCut?: boolean }): StreamMask;
}

/**
 * A redactor for these texts, whichever of them is in the other. Its time depends on the text that it reads, not on how
 * many secrets there are.
 */
export function createRedactor(texts: Iterable<string>): Redactor {
  const forms = [...texts];
  const automaton = new SecretAutomaton(forms);
  let bytes: ByteForms | undefined;
  const inBytes = () => {
    bytes ??= byteForms(forms, automaton);
    return bytes;
  };
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
    get bytes() {
      return inBytes();
    },
    mask: (options) => new StreamMask(inBytes(), options),
  };
}
