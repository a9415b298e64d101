import { DomainError } from '../../base/errors.ts';

export const maxNameBytes = 255;
/** The maximum depth of a tree. It bounds the steps of resolving a path. */
export const maxDepth = 100;
const maxPathLength = 4_096;

/**
 * The key by which names are compared: NFC, so that an é typed on a Mac equals an é typed elsewhere. Case matters, as
 * in git and on a space's computers. The name itself is stored as it was given.
 */
export function nameKey(name: string): Buffer {
  return Buffer.from(name.normalize('NFC'), 'utf8');
}

/**
 * Throws 422 `INVALID_NAME` unless `name` is safe as a file name on every Unix system, in a terminal and in an HTTP
 * header.
 */
export function checkName(name: string): void {
  const fault = faultOf(name);
  if (fault === undefined) return;
  throw new DomainError('unprocessable', 'INVALID_NAME', `A name in the drive ${fault}.`, {
    errors: [{ pointer: 'name', detail: fault }],
  });
}

export function isName(name: string): boolean {
  return faultOf(name) === undefined;
}

function faultOf(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name === '.' || name === '..') return 'must not be "." or ".."';
  if (name.includes('/')) return 'must not contain "/"';
  // A decoder puts U+FFFD where the bytes were not UTF-8. Such a name could not be stored as it was given.
  if (!name.isWellFormed() || name.includes('\uFFFD')) return 'must be valid Unicode';
  for (const character of name) {
    if (character < ' ' || character === '\u007F') return 'must not contain control characters';
  }
  if (Buffer.byteLength(name) > maxNameBytes) return `must have at most ${maxNameBytes} bytes`;
  return undefined;
}

/**
 * The names along a path from the container's root. `/a/b/`, `a/b` and `//a//b` are the same. There is no way up: `..`
 * is refused like any other invalid name.
 */
export function parsePath(path: string): string[] {
  const names = path.split('/').filter((name) => name !== '');
  if (path.length > maxPathLength || names.length > maxDepth) throw tooDeep();
  for (const name of names) checkName(name);
  return names;
}

export function joinPath(names: readonly string[]): string {
  return `/${names.join('/')}`;
}

export function tooDeep(): DomainError {
  return new DomainError('unprocessable', 'TOO_DEEP', `A tree in the drive has at most ${maxDepth} levels.`);
}

/** `report.pdf` becomes `report (2).pdf`. */
export function numberedName(name: string, number: number): string {
  return extendedName(name, String(number));
}

/** `report.pdf` becomes `report (words).pdf`. The stem is shortened if the result is too long. */
export function extendedName(name: string, words: string): string {
  const dot = name.lastIndexOf('.');
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  const suffix = ` (${words})${extension}`;
  const characters = [...stem];
  while (characters.length > 1 && Buffer.byteLength(characters.join('') + suffix) > maxNameBytes) characters.pop();
  const extended = characters.join('') + suffix;
  // The "extension" alone is too long: shorten it with the rest of the name.
  return Buffer.byteLength(extended) <= maxNameBytes ? extended : extendedName(stem, words);
}
