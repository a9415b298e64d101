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
