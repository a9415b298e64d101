import { createHash } from 'node:crypto';
import { randomText } from '../../base/text.ts';

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
const randomLetters = 18;
const passwordLetters = 40;

/**
 * The prefixes of an installation's database and account names on the server. They let installations share a server.
 * Statements of `keeper` accounts may take hours, those of others are limited. The prefixes have no `_`, which is a
 * wildcard in GRANT.
 */
export function namesOf(installation: string): { database: string; user: string; keeper: string } {
  const mark = createHash('sha256').update(installation).digest('hex').slice(0, 6);
  return { database: `d${mark}`, user: `u${mark}`, keeper: `k${mark}` };
}

/** A name that cannot be guessed, because MySQL lets every tenant find out which databases exist. */
export function newName(prefix: string): string {
  return prefix + randomText(letters, randomLetters);
}

/** The key by which names of databases are compared. As in the drive, case matters. */
export function nameKey(name: string): string {
  return name.normalize('NFC');
}

/** Needs no quoting in a URL, a shell or a statement. */
export function newPassword(): string {
  return randomText(letters + letters.toUpperCase(), passwordLetters);
}
