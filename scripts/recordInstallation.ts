import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programVersion } from '../models/migrations/version.ts';
import { loseAll, newMachine, startOn } from '../test/builders/machines.ts';
import { removeTemporaryFolders } from '../test/support/folders.ts';
import { pack } from '../test/upgrade/archive.ts';
import { readContents } from '../test/upgrade/contents.ts';
import { fill } from '../test/upgrade/fill.ts';
import { startWorld, stop } from '../test/upgrade/installation.ts';

/**
 * `npm run record-installation`: fills a new installation of this version with something of every area, stops it, and
 * packs it into `test/upgrade/<version>.tar.zst`, with a JSON file that says what is in it. Later versions upgrade it in
 * `test/upgrade/storedInstallation.test.ts`.
 */
const place = join(import.meta.dirname, '..', 'test', 'upgrade', programVersion);
const world = await startWorld({ isRecording: true });
try {
  const dataDir = newMachine();
  // Homes that began as ordinary folders stay so. An image of homes could not be mounted everywhere.
  mkdirSync(join(dataDir, 'services', 'computers', '.homes', 'none'), { recursive: true });
  const machine = await startOn({
    ...world.settingsOf(dataDir),
    // Each missed run of a sweep takes the Temporal server time at the next start.
    ATRIUM_SWEEP_INTERVAL_SECONDS: '3600',
    // The histories of workflows keep failures. Their stacks would name folders of this machine.
    NODE_OPTIONS: '--stack-trace-limit=0',
    // The test starts it as if it had been stopped for longer (`archive.ts`).
    ATRIUM_WEBHOOK_RETRY_SECONDS: '60,60,60',
  });
  const filled = await fill(machine, world);
  const contents = await readContents(machine.user, filled);
  await stop(machine);
  const stoppedAt = new Date().toISOString();
  pack(dataDir, `${place}.tar.zst`);
  writeFileSync(`${place}.json`, `${JSON.stringify({ stoppedAt, filled, contents }, undefined, 2)}\n`);
  console.log(`Recorded ${place}.tar.zst: ${Math.ceil(statSync(`${place}.tar.zst`).size / 1_024)} KiB.`);
} finally {
  await loseAll();
  await world.close();
  removeTemporaryFolders();
}
