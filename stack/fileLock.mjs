// Plain JavaScript, since bin/bootstrap.mjs needs it before Node 24 and the dependencies are installed.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const pollMs = 100;

/**
 * Identifies one process for good. The system reuses a pid, but not a pid with its start time.
 * Undefined if the process does not exist or is only a zombie.
 */
export function processStamp(pid) {
  try {
    if (existsSync('/proc/self/stat')) {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The second field is the command in parentheses, which may contain spaces. Count from after it.
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

/** Whether the same process that `stamp` names still runs, and not another with its pid. */
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

/** `link` is atomic: it fails if the name is taken, and the linked file is complete from the start. */
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
 * Removes a lock whose owner is dead. Two starts may notice that at once. Without the second lock, the slower start
 * would remove the new lock of the faster one.
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

/** Takes the lock file, or returns its running owner. Takes over the lock of a dead process. */
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
 * Like {@link tryLock}, but waits until the owner releases the lock. Calls `onWait` once, with the owner, if it has to
 * wait.
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
