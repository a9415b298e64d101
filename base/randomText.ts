import { randomInt } from 'node:crypto';

/** A text that nobody guesses, of these letters: each is as likely as the others. */
export function randomText(letters: string, length: number): string {
  return Array.from({ length }, () => letters.charAt(randomInt(letters.length))).join('');
}
