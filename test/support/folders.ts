import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeDataDir } from '../../stack/folders.ts';

const made: string[] = [];

/** Makes a temporary folder. It is removed after the test file, with everything that a stack has put into it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-file-'));
  chmodSync(folder, 0o755);
  made.push(folder);
  return folder;
}

/** Test files of one worker share this module, so `jest/environment.mjs` calls this after each of them. */
export function removeTemporaryFolders(): void {
  for (const folder of made.splice(0)) removeDataDir(folder);
}
