import { redacted, secretForms } from './secretForms.ts';

/** Those that this process has seen last; more would make each log line slow. */
const maxForms = 2_000;
const forms = new Set<string>();

/**
 * Remembers secret values that this process has in memory, so that none of them gets into its log, whatever line or error it is in. The log is
 * the process's, and so is this list.
 */
export function keepOutOfLogs(values: Iterable<string>): void {
  for (const value of values) {
    for (const form of secretForms(value)) {
      forms.delete(form);
      forms.add(form);
    }
  }
  for (const oldest of forms) {
    if (forms.size <= maxForms) break;
    forms.delete(oldest);
  }
}

/** A log line without them. */
export function withoutKnownSecrets(line: string): string {
  let clean = line;
  for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, redacted);
  return clean;
}
