import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadLaunchConfig } from '../../config/launch.ts';
import { removeDataDir } from '../../stack/folders.ts';
import { type Stack, startStack } from '../../stack/index.ts';

/** An object store and a database of a bench's own, which it may reach past Atrium too. */
export async function startStorageAndDatabase(): Promise<Pick<Stack, 'environment' | 'stop'>> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atrium-bench-stack-'));
  chmodSync(dataDir, 0o711);
  const launch = loadLaunchConfig({ ...process.env, ATRIUM_DATA_DIR: dataDir });
  const stack = await startStack({
    ...launch,
    need: { database: true, temporal: false, storage: true },
    ports: 'free',
  });
  return {
    environment: stack.environment,
    async stop() {
      await stack.stop();
      removeDataDir(dataDir);
    },
  };
}
