import { maxNameBytes } from './branchName.ts';

/** Refs that a mirror has: of these namespaces, and without what would be more than a name in a file of git's. */
export function isStorableRef(name: string): boolean {
  return (
    /^refs\/(?:heads|tags|remotes\/origin|atrium)\/[^/]/.test(name) &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses these
    !/[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[./]$/.test(name)
  );
}

/** The same for one that comes from elsewhere: it is text, and short enough for the file that git makes of it. */
export function isAcceptableRef(name: string): boolean {
  const short = name.replace(/^refs\/(?:remotes\/)?[^/]*\//, '');
  return isStorableRef(name) && name.isWellFormed() && Buffer.byteLength(short) <= maxNameBytes;
}

/** Tells which names cannot be beside these: of `a` and `a/b`, git keeps only one. */
export function cannotBeBeside(names: Iterable<string>): (name: string) => boolean {
  const taken = new Set(names);
  const folders = new Set([...taken].flatMap(foldersOf));
  return (name) => folders.has(name) || foldersOf(name).some((folder) => taken.has(folder));
}

function foldersOf(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
