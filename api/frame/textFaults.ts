import { isUtf8 } from 'node:buffer';
import { DomainError } from '../../base/errors.ts';

// Forbidden in every text from a client: NUL, which databases, files and programs each treat differently, and half of a
// surrogate pair, which has no UTF-8.

/** What is wrong with a text; undefined when it is fine. */
export function textFault(text: string): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character';
  return text.isWellFormed() ? undefined : 'contains an unpaired surrogate, which is not valid Unicode';
}

interface Place {
  value: unknown;
  key: string;
  above: Place | undefined;
}

/** Far deeper than real data. Recursion through a value nested as deep as a body is long would overflow the stack. */
const maxDepth = 100;

/**
 * Throws unless a JSON value or a form is plain data: not nested too deep, with valid texts only, and without keys that
 * mean something to JavaScript (`__proto__`; `constructor` with a `prototype`). Walks level by level, because recursion
 * would not survive the depth that it looks for.
 */
export function checkPlainData(value: unknown): void {
  let level: Place[] = [{ value, key: '', above: undefined }];
  for (let depth = 0; level.length > 0; depth++) {
    const next: Place[] = [];
    for (const place of level) {
      if (typeof place.value === 'string') refuse(textFault(place.value), place);
      if (typeof place.value !== 'object' || place.value === null) continue;
      if (depth === maxDepth) throw tooDeep();
      for (const [key, child] of Object.entries(place.value)) {
        const below = { value: child, key, above: place };
        if (!Array.isArray(place.value)) refuse(keyFault(key, child), below);
        if (typeof child === 'string' || (typeof child === 'object' && child !== null)) next.push(below);
      }
    }
    level = next;
  }
}

function keyFault(key: string, value: unknown): string | undefined {
  if (key === '__proto__') return 'is not allowed as the name of a field';
  const isConstructor = key === 'constructor' && typeof value === 'object' && value !== null;
  if (isConstructor && Object.hasOwn(value, 'prototype')) {
    return 'is not allowed as the name of a field that has the field "prototype"';
  }
  const fault = textFault(key);
  return fault === undefined ? undefined : `${fault}, in its name`;
}

function refuse(fault: string | undefined, place: Place): void {
  if (fault !== undefined) throw wrongAt(pointerOf(place), fault);
}

function pointerOf({ key, above }: Place): string {
  if (above === undefined) return '';
  const part = key.toWellFormed().replaceAll('\0', '\ufffd').replaceAll('~', '~0').replaceAll('/', '~1');
  return `${pointerOf(above)}/${part}`;
}

/** A 400 that names the place, worded like the contract's validator. */
export function wrongAt(pointer: string, detail: string): DomainError {
  const place = pointer.slice(0, 1_000).toWellFormed();
  const whole = `${place === '' ? 'The body' : place} ${detail}.`;
  return new DomainError('invalid', 'INVALID_REQUEST', whole, { errors: [{ pointer: place, detail }] });
}

/** Throws when the bytes are not valid UTF-8, with the position of the first invalid byte. */
export function checkUtf8(bytes: Buffer): void {
  if (isUtf8(bytes)) return;
  throw wrongAt('', `is not valid UTF-8, at byte ${validLength(bytes)}`);
}

const replacement = Buffer.from('\ufffd');

/** The position of the first replacement character that decoding has inserted. */
function validLength(bytes: Buffer): number {
  const text = bytes.toString('utf8');
  let byte = 0;
  for (let at = 0; ; ) {
    const found = text.indexOf('\ufffd', at);
    if (found === -1) return byte;
    byte += Buffer.byteLength(text.slice(at, found));
    if (!bytes.subarray(byte, byte + replacement.length).equals(replacement)) return byte;
    byte += replacement.length;
    at = found + 1;
  }
}

/** Throws when a query or a form has a field that is not percent-encoded UTF-8. */
export function checkEncoding(query: string): void {
  for (const pair of query.split('&')) {
    const [name = ''] = pair.split('=', 1);
    if (!isEncoded(name)) throw wrongAt('', 'has a field whose name is not valid percent-encoded UTF-8');
    if (!isEncoded(pair)) throw wrongAt(decodeURIComponent(name), 'is not valid percent-encoded UTF-8');
  }
}

function isEncoded(text: string): boolean {
  if (/[^\x21-\x7e]/.test(text)) return false;
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function tooDeep(): DomainError {
  return new DomainError('invalid', 'JSON_TOO_DEEP', `The body is nested deeper than ${maxDepth} levels.`);
}
