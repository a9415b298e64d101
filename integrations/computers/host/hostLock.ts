import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { HostError } from './hostErrors.ts';
import { ifThere } from './ifThere.ts';
import { isAlive, type Stamp, stampOf } from './stamps.ts';

/** Two hosts on one folder would undo each other’s work. A lock whose owner has ended is taken over. */
export function takeLock(file: string): { release(): void } {
  const own = JSON.stringify(stampOf(process.pid));
  for (let round = 0; round < 2; round += 1) {
    try {
      writeFileSync(file, own, { flag: 'wx', mode: 0o600 });
      return { release: () => rmSync(file, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      const owner = readOwner(file);
      if (owner !== undefined && isAlive(owner)) break;
      rmSync(file, { force: true });
    }
  }
  throw new HostError(
    'COMPUTERS_OFF',
    `another process (${readOwner(file)?.pid ?? '?'}) runs the computers of this folder`,
  );
}

function readOwner(file: string): Stamp | undefined {
  const text = ifThere(() => readFileSync(file, 'utf8'));
  try {
    return text === undefined ? undefined : (JSON.parse(text) as Stamp);
  } catch {
    return undefined; // it was killed while it wrote
  }
}
