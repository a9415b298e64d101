import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeDataDir } from '../../stack/folders.ts';

const made: string[] = [];

/** Makes a temporary folder. It is removed after the test file, with all data of a stack in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-file-'));
  chmodSync(folder, 0o755);
  made.push(folder);
  return folder;
}

/** Called by `jest/environment.mjs` after each test file, since files of one worker share this module. */
export function removeTemporaryFolders(): void {
  for (const folder of made.splice(0)) removeDataDir(folder);
}
