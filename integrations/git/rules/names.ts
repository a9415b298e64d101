import { gitError } from './failures.ts';

/** Git makes a file of the branch's name below `.git/refs/heads`, and one with `.lock` after it. */
export const maxNameBytes = 240;

/** Names that git accepts for a branch and then reads as something else. */
const pseudoRefs =
  /^(?:HEAD|FETCH_HEAD|ORIG_HEAD|MERGE_HEAD|REBASE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|BISECT_HEAD|AUTO_MERGE)$/i;

/** Why a name cannot be a branch, or undefined: git's rules (git-check-ref-format), and ours against ambiguity. */
export function refusalOfBranchName(name: string): string | undefined {
  if (name === '') return 'it is empty';
  if (Buffer.byteLength(name) > maxNameBytes) return `it is longer than ${maxNameBytes} bytes`;
  if (!name.isWellFormed()) return 'it is not text';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses these
  if (/[\x00-\x20\x7f~^:?*[\\]/.test(name)) return 'it has a space, a control character, or one of ~ ^ : ? * [ \\';
  if (name.startsWith('-')) return 'it begins with a hyphen';
  if (name.includes('..') || name.includes('@{')) return 'it has .. or @{ in it';
  if (name.startsWith('/') || name.endsWith('/') || name.includes('//')) return 'a slash stands at its end or twice';
  if (name.endsWith('.')) return 'it ends with a dot';
  if (/(?:^|\/)\.|\.lock(?:\/|$)/.test(name)) return 'a part of it begins with a dot or ends with .lock';
  if (name === '@' || pseudoRefs.test(name)) return 'git uses this name itself';
  if (/^(?:refs|origin|remotes|heads|tags)\//.test(name)) return 'it begins like a full name of git';
  if (/^[0-9a-f]{40}$|^[0-9a-f]{64}$/i.test(name)) return 'it looks like a commit';
  return undefined;
}

/** Whether it is a whole id of an object. */
export function isObjectId(text: string | undefined): text is string {
  return text !== undefined && /^[0-9a-f]{40}$/.test(text);
}

/** Throws 422 `GIT_BRANCH_NAME_REFUSED`. */
export function checkBranchName(name: string): void {
  const refusal = refusalOfBranchName(name);
  if (refusal !== undefined) throw gitError('GIT_BRANCH_NAME_REFUSED', `This cannot be a branch's name: ${refusal}.`);
}

/** Whether a mirror can have this ref: it is in a known namespace, and is safe in git's files. */
export function isStorableRef(name: string): boolean {
  return (
    /^refs\/(?:heads|tags|remotes\/origin|atrium)\/[^/]/.test(name) &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: git refuses these
    !/[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[./]$/.test(name)
  );
}

/** The same for a ref from elsewhere: its name must also be text, and short enough for a file name. */
export function isAcceptableRef(name: string): boolean {
  const short = name.replace(/^refs\/(?:remotes\/)?[^/]*\//, '');
  return isStorableRef(name) && name.isWellFormed() && Buffer.byteLength(short) <= maxNameBytes;
}

/** Tells which names cannot exist beside these: git keeps only one of `a` and `a/b`. */
export function cannotBeBeside(names: Iterable<string>): (name: string) => boolean {
  const taken = new Set(names);
  const folders = new Set([...taken].flatMap(foldersOf));
  return (name) => folders.has(name) || foldersOf(name).some((folder) => taken.has(folder));
}

function foldersOf(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
