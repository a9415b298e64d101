import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { ifThere } from '../system/ifThere.ts';
import { isAlive, type Stamp, stampOf } from '../system/stamps.ts';
import { HostError } from './hostErrors.ts';

/**
 * Takes the lock of a folder, because two hosts would undo each other's work. Takes over the lock of an ended process.
 * Throws `FOLDER_TAKEN` while its owner lives.
 */
export function takeLock(file: string): { release(): void } {
  const own = JSON.stringify(stampOf(process.pid));
  for (let round = 0; round < 2; round += 1) {
    try {
      writeFileSync(file, own, { flag: 'wx', mode: 0o600 });
      return { release: () => rmSync(file, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      if (isTaken(file)) break;
      removeStale(file);
    }
  }
  const owner = readOwner(file)?.pid ?? '?';
  throw new HostError('FOLDER_TAKEN', `another process (${owner}) runs the computers of this folder`);
}

/** Whether the process that holds the lock lives. */
export function isTaken(file: string): boolean {
  const owner = readOwner(file);
  return owner !== undefined && isAlive(owner);
}

/**
 * Removes the lock of an ended process. Another process may just have taken the lock over, so it is moved aside first,
 * and put back if its owner lives.
 */
function removeStale(file: string): void {
  const aside = `${file}.${process.pid}`;
  ifThere(() => renameSync(file, aside));
  try {
    if (isTaken(aside)) linkSync(aside, file);
  } finally {
    rmSync(aside, { force: true });
  }
}

function readOwner(file: string): Stamp | undefined {
  const text = ifThere(() => readFileSync(file, 'utf8'));
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Stamp);
  } catch {
    return undefined; // its writer was killed
  }
}
