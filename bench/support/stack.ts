import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadLaunchConfig } from '../../config/launch.ts';
import { removeDataDir } from '../../stack/folders.ts';
import { type Stack, startStack } from '../../stack/index.ts';
import { getAgent } from '../../stack/programs.ts';

/** Starts an object store and a database for one bench, which may also use them directly, without Atrium. */
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

/** The agent of computers, built once for this user. */
export function agentProgram(): Promise<string> {
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  return getAgent({ ...loadLaunchConfig(), report, signal: new AbortController().signal });
}
