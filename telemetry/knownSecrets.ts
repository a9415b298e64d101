import { SecretAutomaton } from './secretAutomaton.ts';
import { secretForms } from './secretForms.ts';
import { redactText } from './streamRedactor.ts';

/** The most recently seen secrets; more would waste memory. */
const maxForms = 20_000;
/** New ones have an automaton of their own, since building the one for all takes a while. */
const maxFresh = 500;

const forms = new Set<string>();
const fresh = new Set<string>();
let automata = [new SecretAutomaton([]), new SecretAutomaton([])] as const;
let hasChanged = false;

/**
 * Remembers secret values that this process has in memory, so that none of them gets into its log, whatever line or
 * error it is in. The log is the process's, and so is this list.
 */
export function keepOutOfLogs(values: Iterable<string>): void {
  for (const value of values) {
    for (const form of secretForms(value)) {
      if (!forms.delete(form)) {
        fresh.add(form);
        hasChanged = true;
      }
      forms.add(form);
    }
  }
  for (const oldest of forms) {
    if (forms.size <= maxForms) break;
    forms.delete(oldest);
    fresh.delete(oldest);
  }
}

/** A log line without them. */
export function withoutKnownSecrets(line: string): string {
  if (hasChanged) {
    const isFull = fresh.size > maxFresh;
    if (isFull) fresh.clear();
    automata = [isFull ? new SecretAutomaton(forms) : automata[0], new SecretAutomaton(fresh)];
    hasChanged = false;
  }
  return automata.reduce((clean, automaton) => redactText(automaton, clean), line);
}
