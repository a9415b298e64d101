import { isUtf8 } from 'node:buffer';
import { refusalOfBranchName } from './branchName.ts';
import { gitError } from './failures.ts';
import { isAcceptableRef, isStorableRef } from './refName.ts';

export interface RemoteRefs {
  /** Short names of branches that can be worked with here, each with the id of its commit. */
  branches: Map<string, string>;
  /** The branch that the remote has checked out, or one that stands in for it; null for a remote without a commit. */
  defaultBranch: string | null;
  /** Full names that git would fetch and that cannot be kept: longer than a file's name may be, or not text. */
  unusable: Buffer[];
}

/** More of them are no accident. Git compares each ref with each of them. */
const maxUnusable = 1_000;

/**
 * Reads what `git ls-remote --symref` prints. All of it is the server's word: a name may hold line ends, and so make
 * lines of its own, with an id that is not one. Throws what is wrong with a remote that cannot be cloned.
 */
export function parseRemoteRefs(output: Buffer, { maxRefs }: { maxRefs: number }): RemoteRefs {
  const lines = linesOf(output);
  if (lines.length > maxRefs) {
    throw gitError('GIT_TOO_LARGE', `The remote has more than ${maxRefs} branches and tags.`);
  }
  const branches = new Map<string, string>();
  const unusable: Buffer[] = [];
  let [named, head]: (string | undefined)[] = [];
  let hasBranches = false;
  for (const line of lines) {
    const tab = line.indexOf('\t');
    const what = line.toString('latin1', 0, Math.max(tab, 0));
    const name = line.subarray(tab + 1);
    const text = name.toString();
    if (text === 'HEAD' && what.startsWith('ref: refs/heads/')) {
      named = line.toString('utf8', 'ref: refs/heads/'.length, tab);
      continue;
    }
    if (!isObjectId(what)) throw gitError('GIT_REMOTE_FAILED', 'The remote does not answer as a git server does.');
    if (text === 'HEAD') head = what;
    hasBranches ||= text.startsWith('refs/heads/');
    if (!isKeepable(name)) {
      // The others git leaves out by itself, and takes none of them as something to leave out.
      if (isStorableRef(name.toString('latin1'))) unusable.push(name);
    } else if (text.startsWith('refs/heads/')) {
      const short = text.slice('refs/heads/'.length);
      if (refusalOfBranchName(short) === undefined) branches.set(short, what);
    }
  }
  if (unusable.length > maxUnusable) {
    throw gitError(
      'GIT_REMOTE_REFUSED',
      `More than ${maxUnusable} of the remote’s branches and tags have unusable names.`,
    );
  }
  if (hasBranches && branches.size === 0) {
    throw gitError('GIT_REMOTE_REFUSED', 'None of the remote’s branches has a name that can be used here.');
  }
  // A remote whose HEAD is not on a branch: one that is at the same commit, or the one most likely meant.
  const same = [...branches].filter(([, id]) => id === head).map(([name]) => name);
  const likely = [named, 'main', 'master', ...same, ...branches.keys()].filter((name) => name !== undefined);
  return { branches, defaultBranch: likely.find((name) => branches.has(name)) ?? null, unusable };
}

/** SHA-1, or SHA-256. */
export function isObjectId(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

function isKeepable(name: Buffer): boolean {
  return isUtf8(name) && isAcceptableRef(name.toString());
}

export function linesOf(output: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < output.length; ) {
    const end = output.indexOf('\n', start);
    const stop = end < 0 ? output.length : end;
    if (stop > start) lines.push(output.subarray(start, stop));
    start = stop + 1;
  }
  return lines;
}
