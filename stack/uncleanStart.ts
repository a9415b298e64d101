import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Marks the data directory as in use, until `end` is called after an orderly stop. `wasUnclean`: the previous use did
 * not call `end`. The machine may have lost power then, and with it the last writes. The mark is synced to disk before
 * this returns, so that a power cut does not lose it.
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
