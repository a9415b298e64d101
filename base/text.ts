import { randomInt } from 'node:crypto';
import { DataTypes, type Model } from 'sequelize';

/**
 * Text in whole characters. JavaScript counts UTF-16 units, and an emoji has two: a plain `slice` may keep half of one.
 * That is not Unicode, and providers and databases refuse it.
 */

/** The beginning of a text, at most `max` UTF-16 units long. */
export function firstOf(text: string, max: number): string {
  const end = Math.floor(max);
  if (text.length <= end) return text;
  return text.slice(0, isWithinPair(text, end) ? end - 1 : Math.max(0, end));
}

/** The end of a text, at most `max` UTF-16 units long. */
export function lastOf(text: string, max: number): string {
  const start = Math.min(text.length, text.length - Math.floor(max));
  if (start <= 0) return text;
  return text.slice(isWithinPair(text, start) ? start + 1 : start);
}

/** The beginning of a text, at most `max` bytes of UTF-8 long. */
export function firstBytesOf(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  let end = Math.max(0, max);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}

/** A JSON value with each lone surrogate, in a text or a key, replaced by U+FFFD. For input that may have any. */
export function wellFormed<T>(value: T): T {
  if (typeof value === 'string') return value.toWellFormed() as T;
  const json = JSON.stringify(value) as string | undefined;
  const mended = json === undefined ? undefined : wellFormedJson(json);
  // A well-formed value is returned as it is, without being parsed again.
  return mended === undefined || mended === json ? value : (JSON.parse(mended) as T);
}

/** The same for JSON from `JSON.stringify`, which escapes lone surrogates and no whole pairs. */
export function wellFormedJson(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (escaped) => (escaped === '\\\\' ? escaped : '\ufffd'));
}

function isWithinPair(text: string, at: number): boolean {
  return at > 0 && isBetween(text.charCodeAt(at - 1), 0xd800, 0xdbff) && isBetween(text.charCodeAt(at), 0xdc00, 0xdfff);
}

function isBetween(code: number, first: number, last: number): boolean {
  return code >= first && code <= last;
}

/** A column that keeps JSON as text: MySQL and MariaDB disagree about the JSON type and agree about text. */
export function jsonText(field: string) {
  return {
    type: DataTypes.TEXT('medium'),
    get(this: Model): unknown {
      const text = this.getDataValue(field) as string | null;
      return text === null || text === undefined ? null : JSON.parse(text);
    },
    set(this: Model, value: unknown) {
      this.setDataValue(field, value === null || value === undefined ? null : JSON.stringify(value));
    },
  };
}

/** An unguessable text of these letters, each equally likely. */
export function randomText(letters: string, length: number): string {
  return Array.from({ length }, () => letters.charAt(randomInt(letters.length))).join('');
}

/** `1 member`, `2 members`. */
export function counted(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}
