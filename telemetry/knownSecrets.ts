import { SecretAutomaton } from './secretAutomaton.ts';
import { formsOf } from './secretForms.ts';
import { inSlices } from './slices.ts';
import { redactText } from './streamRedactor.ts';

/** The most recently seen secrets; more would waste memory. */
const maxForms = 40_000;
/** For one value: a private key has fewer. Of a longer value, more are looked for only where it stands as it is. */
const maxFormsOfValue = 2_000;
/** New ones have an automaton of their own, since building the one for all takes a while. */
const maxFresh = 500;

/** The forms of each value, the least recently seen one first. */
const known = new Map<string, readonly string[]>();
/** How many values and forms these are. */
let count = 0;
let fresh = new Set<string>();
let automata = [SecretAutomaton.of([]), SecretAutomaton.of([])] as const;

let waiting = new Set<string>();
/** Will take in everything that waits. */
let next: Promise<void> | undefined;
/** What is being taken in now. */
let present: Promise<void> = Promise.resolve();

/**
 * Remembers secret values that this process has in memory, so that none of them gets into its log, whatever line or
 * error it is in. The log is the process's, and so is this list. It holds once the promise is fulfilled. Many callers
 * share one build, which is done in slices.
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

/** Takes in the values that wait. One call at a time. */
async function takeIn(): Promise<void> {
  const values = [...waiting].filter((value) => !known.has(value));
  waiting = new Set();
  if (next !== undefined) present = next;
  next = undefined;
  const taken = await inSlices(building(values));
  // Only now is a value known: the log is without it.
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

/** Builds the automata with these values too, and returns the forms of each. */
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

/** A log line without them. */
export function withoutKnownSecrets(line: string): string {
  return automata.reduce((clean, automaton) => redactText(automaton, clean), line);
}
