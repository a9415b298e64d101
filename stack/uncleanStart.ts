import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Says that the data directory is in use, until `end` is called after an orderly stop. `wasUnclean` is whether the use
 * before this one had no such end: then the machine may have lost its power, and what was written last with it. The
 * mark is on the disk before this returns, so that a loss of power finds it there.
 */
export function markInUse(dataDir: string): { wasUnclean: boolean; end(): void } {
  const folder = join(dataDir, 'run');
  const mark = join(folder, 'in-use');
  const wasUnclean = existsSync(mark);
  if (!wasUnclean) {
    writeFileSync(mark, '', { mode: 0o600, flush: true });
    const descriptor = openSync(folder, 'r');
    fsyncSync(descriptor);
    closeSync(descriptor);
  }
  return { wasUnclean, end: () => rmSync(mark, { force: true }) };
}
