// Plain JavaScript, because bin/bootstrap.mjs needs it before Node 24 and the dependencies are there.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 100;

/**
 * Names one process for good: a pid alone is used again, a pid with its start time is not.
 * Undefined when there is no such process, or only its zombie.
 */
export function processStamp(pid) {
  try {
    if (existsSync('/proc/self/stat')) {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The second field is the command in parentheses and may hold spaces: count from behind it.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
      const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      return { pid, startTime: `${bootId}/${fields[19]}` };
    }
    const startTime = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return startTime === '' ? undefined : { pid, startTime };
  } catch {
    return undefined;
  }
}

/** Whether the very process that `stamp` names still runs. */
export function isRunning(stamp) {
  return stamp?.startTime !== undefined && processStamp(stamp.pid)?.startTime === stamp.startTime;
}

function readOwner(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** `link` fails when the name is taken, atomically, and the file is complete from its first moment. */
function linkIfFree(from, to) {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Removes a lock whose owner is dead. Two starts may find that at once; without the second lock around it, the slower
 * one would remove the faster one's new lock.
 */
function removeStale(path, claim) {
  const breaking = `${path}.breaking`;
  if (!linkIfFree(claim, breaking)) {
    if (!isRunning(readOwner(breaking))) rmSync(breaking, { force: true });
    return;
  }
  try {
    if (!isRunning(readOwner(path))) rmSync(path, { force: true });
  } finally {
    rmSync(breaking, { force: true });
  }
}

/** Takes the lock file, or answers with the owner that runs and has it. A dead process's lock is taken over. */
export function tryLock(path) {
  mkdirSync(dirname(path), { recursive: true });
  const self = { ...processStamp(process.pid), token: randomBytes(8).toString('hex') };
  const claim = `${path}.${process.pid}.${self.token}`;
  writeFileSync(claim, JSON.stringify(self), { mode: 0o644 });
  try {
    for (;;) {
      if (linkIfFree(claim, path)) {
        return {
          release() {
            if (readOwner(path)?.token === self.token) rmSync(path, { force: true });
          },
        };
      }
      const owner = readOwner(path);
      if (isRunning(owner)) return { owner };
      removeStale(path, claim);
    }
  } finally {
    rmSync(claim, { force: true });
  }
}

/**
 * As {@link tryLock}, but waits for the owner to let go: `onWait` is called once, with the owner, when there is one.
 */
export async function waitForLock(path, { signal, onWait } = {}) {
  for (let waited = false; ; waited = true) {
    signal?.throwIfAborted();
    const result = tryLock(path);
    if (result.release !== undefined) return result;
    if (!waited) onWait?.(result.owner);
    await sleep(pollMs, undefined, { signal });
  }
}
