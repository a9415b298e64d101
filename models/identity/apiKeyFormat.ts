import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { randomText } from '../../base/text.ts';

/** An API key is `atr_`, 30 random characters (178 bits), and 6 of checksum over the 30, all of base 62. */
export const apiKeyPrefix = 'atr_';
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomLength = 30;
const checksumLength = 6;
const pattern = new RegExp(`^${apiKeyPrefix}[0-9A-Za-z]{${randomLength + checksumLength}}$`);
const hintLength = 8;

/** A new key. Its text is shown once and never stored. */
export function newApiKey(): string {
  const random = randomText(alphabet, randomLength);
  return `${apiKeyPrefix}${random}${checksumOf(random)}`;
}

/**
 * Whether this can be a key at all. Typing errors, foreign keys and guesses are refused without asking the database.
 */
export function isWellFormedApiKey(key: string): boolean {
  if (!pattern.test(key)) return false;
  const random = key.slice(apiKeyPrefix.length, apiKeyPrefix.length + randomLength);
  return key.endsWith(checksumOf(random));
}

/** The hash of a key, which is stored in its place. A key has 178 random bits, so a plain hash is enough. */
export function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** The key's beginning, by which its owner recognises it in a list. */
export function hintOf(key: string): string {
  return key.slice(0, hintLength);
}

function checksumOf(random: string): string {
  let rest = crc32(random);
  let text = '';
  for (let i = 0; i < checksumLength; i++) {
    text = `${alphabet[rest % alphabet.length]}${text}`;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}
