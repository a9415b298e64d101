import type { GitConfig } from '../../../config/git.ts';
import { asLines, type Git } from '../process/git.ts';
import { gitError } from '../rules/failures.ts';
import type { TreeFacts } from '../types.ts';

const maxListed = 100;
/** A pointer of Git LFS has about 130 bytes; the specification allows fewer than 1,024. */
const pointerBytes = { least: 100, most: 1_023 };
const maxCandidates = 50_000;

/** The facts about a tree without files. */
export const noTree = (): TreeFacts => ({ files: 0, bytes: 0, lfsPointers: 0, submodules: [] });

/** Counts a tree while git lists it, and stops if it is too large: a few kilobytes can name a billion files. */
export async function measureTree(git: Git, commit: string, config: GitConfig): Promise<TreeFacts> {
  const facts = noTree();
  const tooLargeError = () => {
    const mib = Math.round(config.maxTreeBytes / 1_048_576);
    return gitError('GIT_TOO_LARGE', `A checkout would bring more than ${config.maxFiles} files or ${mib} MiB.`);
  };
  const attributes: string[] = [];
  const candidates: string[] = [];
  const tooLarge = new AbortController();
  let names = 0;
  let open: Buffer = Buffer.alloc(0);
  const take = (line: string) => {
    const match = /^(\d+) \w+ ([0-9a-f]+) +(\d+|-)\t(.*)$/s.exec(line);
    if (match === null) return;
    const [, mode, id = '', size, path = ''] = match;
    names += Buffer.byteLength(path);
    if (mode === '160000') {
      if (facts.submodules.length < maxListed) facts.submodules.push(path);
      return;
    }
    facts.files += 1;
    facts.bytes += Number(size);
    if (path === '.gitattributes' || path.endsWith('/.gitattributes')) attributes.push(id);
    const isCandidate = Number(size) >= pointerBytes.least && Number(size) <= pointerBytes.most;
    if (isCandidate && candidates.length < maxCandidates) candidates.push(id);
    if (facts.files > config.maxFiles || facts.bytes > config.maxTreeBytes || names > config.maxFiles * 512) {
      tooLarge.abort(tooLargeError());
    }
  };
  await git.do(['ls-tree', '-r', '-l', '-z', '--full-tree', '--end-of-options', commit], {
    signal: AbortSignal.any([git.signal, tooLarge.signal]),
    output(chunk) {
      if (tooLarge.signal.aborted) return;
      open = Buffer.concat([open, chunk]);
      for (let end = open.indexOf(0); end >= 0; end = open.indexOf(0)) {
        take(open.toString('utf8', 0, end));
        open = open.subarray(end + 1);
      }
      if (open.length > 1_048_576) tooLarge.abort(tooLargeError());
    },
  });
  tooLarge.signal.throwIfAborted();
  const areInLfs = (await contentsOf(git, attributes.slice(0, 1_000))).includes('filter=lfs');
  if (areInLfs) facts.lfsPointers = (await contentsOf(git, candidates)).split(pointerStart).length - 1;
  return facts;
}

const pointerStart = '\nversion https://git-lfs.github.com/spec/v1\noid sha256:';

/** The contents of small objects, each after a line that names it. */
async function contentsOf(git: Git, ids: readonly string[]): Promise<string> {
  if (ids.length === 0) return '';
  return git.text(['cat-file', '--batch', '--buffer'], { input: asLines([...new Set(ids)]) });
}
