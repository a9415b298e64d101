import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { StackContext } from '../../stack/context.ts';
import { prepareDataDir, prepareServicesDir } from '../../stack/folders.ts';
import { temporaryFolder } from './folders.ts';

/** The context of a start in a temporary folder. */
export function createStackContext(overrides: Partial<StackContext> = {}): StackContext & { lines: string[] } {
  const dataDir = overrides.dataDir ?? temporaryFolder();
  prepareDataDir(dataDir);
  const cacheDir = join(dataDir, 'cache');
  mkdirSync(cacheDir, { recursive: true });
  const lines: string[] = [];
  return {
    dataDir,
    servicesDir: prepareServicesDir(dataDir),
    cacheDir,
    environment: process.env,
    ports: 'free',
    bucket: 'atrium-test',
    report: (line) => lines.push(line),
    signal: new AbortController().signal,
    ...overrides,
    lines,
  };
}
