import { gitError } from './failures.ts';

/** A file of that name is made below `.git/refs/heads`, with `.lock` behind it. */
export const maxNameBytes = 240;

/** Names that git would take and then read as something else. */
const pseudoRefs =
  /^(?:HEAD|FETCH_HEAD|ORIG_HEAD|MERGE_HEAD|REBASE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|BISECT_HEAD|AUTO_MERGE)$/i;

/** Why this cannot be a branch, or undefined: git's own rules (git-check-ref-format), and those that keep it one. */
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
  if (name.split('/').some((part) => part.startsWith('.') || part.endsWith('.lock')))
    return 'a part of it begins with a dot or ends with .lock';
  if (name === '@' || pseudoRefs.test(name)) return 'git uses this name itself';
  if (/^(?:refs|origin|remotes|heads|tags)\//.test(name)) return 'it begins like a full name of git';
  if (/^[0-9a-f]{40}$|^[0-9a-f]{64}$/i.test(name)) return 'it looks like a commit';
  return undefined;
}

/** Throws 422 `GIT_BRANCH_NAME_REFUSED`. */
export function checkBranchName(name: string): void {
  const refusal = refusalOfBranchName(name);
  if (refusal !== undefined) throw gitError('GIT_BRANCH_NAME_REFUSED', `This cannot be a branch's name: ${refusal}.`);
}
