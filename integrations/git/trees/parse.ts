import { isObjectId } from '../rules/names.ts';
import type { GitChange, GitChangeKind, GitCommit, GitStatus } from '../treeTypes.ts';

const kinds: Readonly<Record<string, GitChangeKind>> = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  R: 'renamed',
  C: 'copied',
  T: 'typeChanged',
};

/** Parses `git status --porcelain=v2 --branch -z`, whose end may be missing. */
export function parseStatus(bytes: Buffer, options: { isCut: boolean; maxChanges: number }): GitStatus {
  const fields = bytes.toString().split('\0');
  // The text after the last separator is empty or incomplete.
  fields.pop();
  const status: GitStatus = {
    ...{ branch: null, commit: null, upstream: null, ahead: 0, behind: 0, unfinished: null },
    changes: [],
    truncated: options.isCut,
  };
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] ?? '';
    if (field.startsWith('# ')) takeHeader(status, field);
    else {
      const isMove = field.startsWith('2 ');
      const change = changeOf(field, isMove ? (fields[at + 1] ?? null) : null);
      if (isMove) at += 1;
      if (change === undefined) continue;
      if (status.changes.length === options.maxChanges) {
        status.truncated = true;
        break;
      }
      status.changes.push(change);
    }
  }
  return status;
}

function takeHeader(status: GitStatus, field: string): void {
  const [, name, ...rest] = field.split(' ');
  const value = rest.join(' ');
  if (name === 'branch.head' && value !== '(detached)') status.branch = value;
  else if (name === 'branch.oid' && value !== '(initial)') status.commit = value;
  else if (name === 'branch.upstream') status.upstream = value;
  else if (name === 'atrium.unfinished') status.unfinished = value as GitStatus['unfinished'];
  else if (name === 'branch.ab') {
    const [, ahead, behind] = /^\+(\d+) -(\d+)$/.exec(value) ?? [];
    status.ahead = Number(ahead ?? 0);
    status.behind = Number(behind ?? 0);
  }
}

/** How many fields come before the path, by the first character of a line. */
const fieldsBefore: Readonly<Record<string, number>> = { 1: 8, 2: 9, u: 10, '?': 1 };

function changeOf(field: string, oldPath: string | null): GitChange | undefined {
  const before = fieldsBefore[field[0] ?? ''];
  if (before === undefined) return undefined;
  const parts = field.split(' ');
  const path = parts.slice(before).join(' ');
  if (path === '') return undefined;
  if (field[0] === '?') return { path, oldPath: null, staged: null, unstaged: 'untracked' };
  if (field[0] === 'u') return { path, oldPath: null, staged: 'conflicted', unstaged: 'conflicted' };
  const [staged = '.', unstaged = '.'] = parts[1] ?? '';
  return { path, oldPath, staged: kinds[staged] ?? null, unstaged: kinds[unstaged] ?? null };
}

const maxMessage = 10_000;
const fieldsOfCommit = 8;

/** Parses `git log -z` with eight fields for each commit. The last commit may be cut. */
export function parseLog(bytes: Buffer): GitCommit[] {
  const fields = bytes.toString().split('\0');
  const commits: GitCommit[] = [];
  for (let at = 0; at + fieldsOfCommit <= fields.length; at += fieldsOfCommit) {
    const of = fields.slice(at, at + fieldsOfCommit);
    const [id = '', parents = '', name = '', email = '', committer = '', committerEmail = ''] = of;
    const [committedAt = '', message = ''] = of.slice(6);
    if (!isObjectId(id)) break;
    commits.push({
      id,
      parents: parents === '' ? [] : parents.split(' '),
      author: { name, email },
      committer: { name: committer, email: committerEmail },
      committedAt,
      message: message.trimEnd().slice(0, maxMessage),
    });
  }
  return commits;
}
