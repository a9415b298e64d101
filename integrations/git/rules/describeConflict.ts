import { cleanWords } from './describeFailure.ts';

const maxNamed = 5;

/** What git names in its own lines, each after a tab. */
const listAfter = (first: RegExp) => new RegExp(`${first.source}[^\\n]*\\n((?:\\t[^\\n]*\\n)+)`);

const changed = listAfter(/Your local changes to the following files would be/);
const untracked = listAfter(/The following untracked working tree files would be/);

/** Why git leaves a working tree as it is, by its words, and what to do next. `other` is what was to be merged. */
export function describeConflict(words: string, other = 'origin/main'): string {
  const [, changes] = changed.exec(words) ?? [];
  if (changes !== undefined) {
    const files = named(changes.split('\n'));
    return `What is changed in ${files} would be lost. Commit it, or discard it (\`git restore\` at a terminal), and try again.`;
  }
  const [, unknown] = untracked.exec(words) ?? [];
  if (unknown !== undefined) {
    return `${named(unknown.split('\n'))} would be overwritten, and is in no commit. Commit it, move it or delete it, and try again.`;
  }
  if (/not possible to fast-forward|diverging branches/i.test(words)) {
    return `Both sides have commits that the other lacks. Merge at a terminal (\`git merge ${quoted(other)}\`), resolve what is in conflict, and push.`;
  }
  const unmerged = [...words.matchAll(/^(.+): needs merge$/gm)].map(([, path = '']) => path);
  const which = unmerged.length > 0 ? named(unmerged) : 'Some file';
  return `${which} is in conflict since a merge. Resolve that and commit it, or abort the merge at a terminal, and try again.`;
}

/** As a shell takes it: a branch may have any name. */
function quoted(name: string): string {
  const shown = cleanWords(name, 250);
  return /^[\w./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}

function named(lines: readonly string[]): string {
  const paths = lines.map((line) => line.trim()).filter((line) => line !== '');
  const more = paths.length > maxNamed ? ` and ${paths.length - maxNamed} more` : '';
  return cleanWords(paths.slice(0, maxNamed).join(', '), 300) + more;
}
