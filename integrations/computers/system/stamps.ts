import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { ifThere } from './ifThere.ts';

/** Identifies a process, also against a later one with the same pid. */
export interface Stamp {
  pid: number;
  /** In clock ticks since the machine's start, or a date on systems without /proc. */
  startTime: string;
}

const hasProc = existsSync('/proc/self/stat');

/** The fields of /proc/PID/stat after the name, which may contain anything: state, parent, … */
function statFields(pid: number): string[] | undefined {
  const text = ifThere(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

export function stampOf(pid: number): Stamp | undefined {
  if (!hasProc) return stampByPs(pid);
  const fields = statFields(pid);
  const startTime = fields?.[19];
  // A zombie holds nothing but its pid.
  return startTime === undefined || fields?.[0] === 'Z' ? undefined : { pid, startTime };
}

/** For systems without /proc, such as macOS. Only holders are looked at there: the engine runs the computers. */
export function stampByPs(pid: number): Stamp | undefined {
  const asked = ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)];
  const { stdout } = spawnSync('/bin/ps', asked, { encoding: 'utf8', env: { LC_ALL: 'C', TZ: 'UTC' } });
  const [, state, startTime] = /^\s*(\S+)\s+(\S.*\S)\s*$/.exec(stdout ?? '') ?? [];
  return startTime === undefined || state?.startsWith('Z') ? undefined : { pid, startTime };
}

/** The parent of a living process. */
export function parentOf(pid: number): number | undefined {
  const parent = Number(statFields(pid)?.[1]);
  return parent > 0 ? parent : undefined;
}

export function isAlive(stamp: Stamp): boolean {
  return stampOf(stamp.pid)?.startTime === stamp.startTime;
}

export function killIfAlive(stamp: Stamp, signal: NodeJS.Signals = 'SIGKILL'): void {
  if (isAlive(stamp)) ifThere(() => process.kill(stamp.pid, signal));
}

/** The id of this boot. Processes recorded under another boot have ended. */
export function bootId(): string {
  return ifThere(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? 'unknown';
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/**
 * A living process and all its descendants. In a pid namespace orphans become children of the first process, so none is
 * missed.
 */
export function treeOf(root: Stamp): Stamp[] {
  return treesOf([root]);
}

export function treesOf(roots: readonly Stamp[]): Stamp[] {
  const alive = roots.filter(isAlive);
  if (alive.length === 0) return [];
  const children = new Map<number, number[]>();
  for (const pid of allPids()) {
    const parent = Number(statFields(pid)?.[1] ?? 0);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const found = new Set(alive.map(({ pid }) => pid));
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child);
  return [...found].flatMap((pid) => stampOf(pid) ?? []);
}

/** All processes of a user. */
export function processesOf(uid: number): Stamp[] {
  return allPids().flatMap((pid) => {
    const owner = ifThere(() => statSync(`/proc/${pid}`).uid);
    return owner === uid ? (stampOf(pid) ?? []) : [];
  });
}

export function isStopped(stamp: Stamp): boolean {
  return statFields(stamp.pid)?.[0] === 'T';
}

/** Between the machine's own processes (0) and a computer's programs (500, set by its agent). */
const score = '300';

/**
 * Makes the OOM killer end computers before their holders, the database and Atrium. Descendants cannot lower a score
 * that root has set.
 */
export function endFirst(pids: number[]): void {
  for (const pid of pids) {
    try {
      ifThere(() => writeFileSync(`/proc/${pid}/oom_score_adj`, score));
    } catch {
      // Without root, we may not change a sandbox that is being made.
    }
  }
}
