import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeDataDir } from '../../stack/folders.ts';

const made: string[] = [];

/** A temporary folder, removed after the test file with all that a stack has put into it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-file-'));
  chmodSync(folder, 0o755);
  made.push(folder);
  return folder;
}

afterAll(() => {
  for (const folder of made.splice(0)) removeDataDir(folder);
});
