import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { ifThere } from './ifThere.ts';

/** A process that is not mistaken for a later one with its pid. */
export interface Stamp {
  pid: number;
  /** In clock ticks since the machine’s start; the date, where the system tells no more. */
  startTime: string;
}

const hasProc = existsSync('/proc/self/stat');

/** The fields of /proc/PID/stat after the name, which may hold anything: state, parent, … */
function statFields(pid: number): string[] | undefined {
  const text = ifThere(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

export function stampOf(pid: number): Stamp | undefined {
  if (!hasProc) return stampByPs(pid);
  const fields = statFields(pid);
  const startTime = fields?.[19];
  // A zombie holds nothing any more but its number.
  return startTime === undefined || fields?.[0] === 'Z' ? undefined : { pid, startTime };
}

/** For systems such as macOS. What runs in computers there is the engine’s, so only holders are looked at. */
export function stampByPs(pid: number): Stamp | undefined {
  const asked = ['-o', 'stat=', '-o', 'lstart=', '-p', String(pid)];
  const { stdout } = spawnSync('/bin/ps', asked, { encoding: 'utf8', env: { LC_ALL: 'C', TZ: 'UTC' } });
  const [, state, startTime] = /^\s*(\S+)\s+(\S.*\S)\s*$/.exec(stdout ?? '') ?? [];
  return startTime === undefined || state?.startsWith('Z') ? undefined : { pid, startTime };
}

/** Of a process that is alive. */
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

/** This boot of the machine: what is recorded of another has ended with it. */
export function bootId(): string {
  return ifThere(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()) ?? 'unknown';
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A process and all that descend from it. In a pid namespace orphans become the first one’s children, so none is missed. */
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

/** What runs as this user, whoever started it. */
export function processesOf(uid: number): Stamp[] {
  return allPids().flatMap((pid) => {
    const owner = ifThere(() => statSync(`/proc/${pid}`).uid);
    return owner === uid ? (stampOf(pid) ?? []) : [];
  });
}

export function isStopped(stamp: Stamp): boolean {
  return statFields(stamp.pid)?.[0] === 'T';
}

/** Between what the machine needs (0) and what a computer starts (500, by its agent). */
const score = '300';

/**
 * Where the machine runs out of memory, computers are ended before their holders, the database and Atrium itself. What
 * root has set, nothing that descends from these processes can lower.
 */
export function endFirst(pids: number[]): void {
  for (const pid of pids) {
    try {
      ifThere(() => writeFileSync(`/proc/${pid}/oom_score_adj`, score));
    } catch {
      // Without root, a sandbox that is being made belongs to nobody whom we may change.
    }
  }
}
