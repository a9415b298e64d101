import { SecretAutomaton } from './secretAutomaton.ts';
import { formsOf } from './secretForms.ts';
import { inSlices } from './slices.ts';
import { redactText } from './streamRedactor.ts';

/** Limit of values and forms. The most recently seen ones are kept; more would waste memory. */
const maxForms = 40_000;
/** Limit of one value's forms beside its plain text. A private key has fewer. */
const maxFormsOfValue = 2_000;
/** New forms have an automaton of their own, since building the one for all takes a while. */
const maxFresh = 500;

/** The forms of each value, the least recently seen value first. */
const known = new Map<string, readonly string[]>();
/** The number of values and forms in `known`. */
let count = 0;
let fresh = new Set<string>();
let automata = [SecretAutomaton.of([]), SecretAutomaton.of([])] as const;

let waiting = new Set<string>();
/** Will take in all waiting values. */
let next: Promise<void> | undefined;
/** The build that is in progress. */
let present: Promise<void> = Promise.resolve();

/**
 * Remembers secret values that this process has in memory, so that none gets into its log, in whatever line or error.
 * The log belongs to the process, and so does this list. Takes effect when the promise resolves. Callers share one
 * build, which is done in slices.
 */
export function keepOutOfLogs(values: Iterable<string>): Promise<void> {
  let areKnown = true;
  for (const value of values) {
    const forms = known.get(value);
    if (forms === undefined) {
      waiting.add(value);
      areKnown = false;
    } else {
      known.delete(value);
      known.set(value, forms);
    }
  }
  if (areKnown) return Promise.resolve();
  next ??= present.catch(() => {}).then(takeIn);
  return next;
}

/** Takes in the waiting values. Runs once at a time. */
async function takeIn(): Promise<void> {
  const values = [...waiting].filter((value) => !known.has(value));
  waiting = new Set();
  if (next !== undefined) present = next;
  next = undefined;
  const taken = await inSlices(building(values));
  // Only now does a value count as known: the log leaves it out from here on.
  for (const [value, forms] of taken) {
    known.set(value, forms);
    count += 1 + forms.length;
  }
  for (const [oldest, forms] of known) {
    if (count <= maxForms) break;
    known.delete(oldest);
    count -= 1 + forms.length;
  }
}

/** Builds the automata with these values added. Returns the forms of each value. */
function* building(values: readonly string[]): Generator<number, Map<string, readonly string[]>> {
  const taken = new Map<string, readonly string[]>();
  const coming = new Set(fresh);
  for (const value of values) {
    const forms = [...(yield* formsOf(value, { left: maxFormsOfValue }))];
    taken.set(value, forms);
    for (const form of forms) coming.add(form);
  }
  const isFull = coming.size > maxFresh;
  const all = isFull ? yield* SecretAutomaton.building([...known.values(), ...taken.values()].flat()) : automata[0];
  fresh = isFull ? new Set() : coming;
  automata = [all, yield* SecretAutomaton.building(fresh)];
  return taken;
}

/** Removes the known secrets from a log line. */
export function withoutKnownSecrets(line: string): string {
  return automata.reduce((clean, automaton) => redactText(automaton, clean), line);
}
