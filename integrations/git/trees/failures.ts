import type { DomainError } from '../../../base/errors.ts';
import { cleanWords, nameSome } from '../rules/describeFailure.ts';
import { type GitFailure, gitError, objectsMissing, treeMissing } from '../rules/failures.ts';
import type { TreeAnswer } from './treeShell.ts';

/** The exit codes of our scripts, beside git's own codes. */
export const exitCodes = {
  nothing: 65,
  missing: 66,
  conflicted: 67,
  unfinished: 68,
  tooMuch: 69,
  occupied: 73,
  busy: 75,
  /** It was asked to end, and has undone its half-done work. */
  ended: 143,
} as const;

/** Maps git's messages in a working tree to failures; the first match counts. */
const meanings: [pattern: RegExp, code: GitFailure, sentence: string | ((words: string, other?: string) => string)][] =
  [
    [/from promisor remote|lazy fetching disabled/, 'GIT_OBJECTS_MISSING', objectsMissing().message],
    [/a branch named .* already exists/, 'GIT_BRANCH_EXISTS', 'There is a branch of that name.'],
    [
      /cannot lock ref|unable to create directory|File name too long|cannot create/i,
      'GIT_BRANCH_NAME_REFUSED',
      'A branch cannot have this name beside those that are there.',
    ],
    [
      /not a valid object name|unknown revision|did not match any file\(s\) known|invalid reference|not a commit|bad revision|ambiguous argument/i,
      'GIT_REF_UNKNOWN',
      'There is no such branch or commit.',
    ],
    [
      /would be (?:overwritten|removed)|Please commit your changes|you need to resolve your current index|not possible because you have unmerged|Automatic merge failed|not possible to fast-forward|You have not concluded/i,
      'GIT_CONFLICT',
      describeConflict,
    ],
    [/No space left on device|Disk quota exceeded/i, 'GIT_TREE_FULL', 'There is no room left on the computer.'],
    [/Unable to create .*\.lock|index file open failed/, 'GIT_TREE_BUSY', 'Another git works in this tree.'],
  ];

/** Describes a failure in a working tree. `other` is the branch that was to be merged. */
export function failureOf({ code, stdout, said }: TreeAnswer, other?: string): DomainError {
  if (code === exitCodes.missing) return treeMissing();
  if (code === exitCodes.busy) return gitError('GIT_TREE_BUSY', 'Another git works in this tree.');
  if (code === exitCodes.occupied) {
    return gitError('GIT_TREE_OCCUPIED', 'Another folder is where the repository’s files are to be.');
  }
  const words = `${stdout.toString()}\n${said}`;
  const cause = new Error(`git ended with ${code}: ${words.slice(-2_000)}`);
  const [, known, sentence] = meanings.find(([pattern]) => pattern.test(words)) ?? [];
  if (known !== undefined && sentence !== undefined) {
    return gitError(known, typeof sentence === 'string' ? sentence : sentence(words, other), { cause });
  }
  const told = cleanWords(words, 300);
  return gitError('GIT_TREE_FAILED', told === '' ? 'Git has failed on the computer.' : `Git says: ${told}`, { cause });
}

/** Matches the files that git lists after a line, each after a tab. */
const listAfter = (first: RegExp) => new RegExp(`${first.source}[^\\n]*\\n((?:\\t[^\\n]*\\n)+)`);

const changed = listAfter(/Your local changes to the following files would be/);
const untracked = listAfter(/The following untracked working tree files would be/);

/** Says why git leaves a working tree as it is, and what to do next. */
function describeConflict(words: string, other = 'origin/main'): string {
  const filesIn = (text: string) => nameSome(text.split('\n'), 300);
  const [, changes] = changed.exec(words) ?? [];
  if (changes !== undefined) {
    return `What is changed in ${filesIn(changes)} would be lost. Commit it, or discard it (\`git restore\` at a terminal), and try again.`;
  }
  const [, unknown] = untracked.exec(words) ?? [];
  if (unknown !== undefined) {
    return `${filesIn(unknown)} would be overwritten, and is in no commit. Commit it, move it or delete it, and try again.`;
  }
  if (/not possible to fast-forward|diverging branches/i.test(words)) {
    return `Both sides have commits that the other lacks. Merge at a terminal (\`git merge ${quoted(other)}\`), resolve what is in conflict, and push.`;
  }
  const unmerged = [...words.matchAll(/^(.+): needs merge$/gm)].map(([, path = '']) => path);
  const which = unmerged.length > 0 ? nameSome(unmerged, 300) : 'Some file';
  return `${which} is in conflict since a merge. Resolve that and commit it, or abort the merge at a terminal, and try again.`;
}

/** Quotes a name for a shell: a branch may have any name. */
function quoted(name: string): string {
  const shown = cleanWords(name, 250);
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}
