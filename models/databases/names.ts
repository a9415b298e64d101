import { createHash } from 'node:crypto';
import { randomText } from '../../base/text.ts';

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
const randomLetters = 18;
const passwordLetters = 40;

/**
 * What an installation's databases and accounts are called on the server: how their names begin. Installations can so
 * share a server. What `keeper`s ask for takes as long as it takes; all others are watched. No `_` is in them, which GRANT takes for any letter.
 */
export function namesOf(installation: string): { database: string; user: string; keeper: string } {
  const mark = createHash('sha256').update(installation).digest('hex').slice(0, 6);
  return { database: `d${mark}`, user: `u${mark}`, keeper: `k${mark}` };
}

/** A name that nobody guesses: MySQL lets every tenant see what databases there are. */
export function newName(prefix: string): string {
  return prefix + randomText(letters, randomLetters);
}

/** What two names of databases are compared by, as names in the drive are: upper and lower case differ. */
export function nameKey(name: string): string {
  return name.normalize('NFC');
}

/** It needs no quoting anywhere, be it in a URL, a shell or a statement. */
export function newPassword(): string {
  return randomText(letters + letters.toUpperCase(), passwordLetters);
}
