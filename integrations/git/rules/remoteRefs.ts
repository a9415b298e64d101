import { isUtf8 } from 'node:buffer';
import { gitError, noGitServer } from './failures.ts';
import { isAcceptableRef, isStorableRef, refusalOfBranchName } from './names.ts';

export interface RemoteRefs {
  /** Short names of the usable branches, with the ids of their commits. */
  branches: Map<string, string>;
  /** The remote's checked-out branch, or a substitute; null for a remote without a commit. */
  defaultBranch: string | null;
  /** Full names that git would fetch and that cannot be kept: too long for a file name, or not UTF-8. */
  unusable: Buffer[];
}

/** More than this is no accident, and git compares every ref with each of them. */
const maxUnusable = 1_000;

/**
 * Parses the output of `git ls-remote --symref`. The server controls all of it: a name may contain line breaks, which
 * makes lines with invalid ids. Throws if the remote cannot be cloned.
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
    if (!/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(what)) throw gitError(...noGitServer);
    if (text === 'HEAD') head = what;
    hasBranches ||= text.startsWith('refs/heads/');
    if (!isUtf8(name) || !isAcceptableRef(text)) {
      // Git leaves out unstorable names by itself, and does not accept them in a list of refs to leave out.
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
  // If the remote's HEAD is not on a branch, take one at the same commit, or the most likely one.
  const same = [...branches].filter(([, id]) => id === head).map(([name]) => name);
  const likely = [named, 'main', 'master', ...same, ...branches.keys()].filter((name) => name !== undefined);
  return { branches, defaultBranch: likely.find((name) => branches.has(name)) ?? null, unusable };
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
