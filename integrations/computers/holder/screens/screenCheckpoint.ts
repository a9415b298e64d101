import { rename, writeFile } from 'node:fs/promises';
import type { Screen } from '../../hostClient.ts';
import { readPlainFile } from '../../processes/plainFiles.ts';

const maxBytes = 8 * 1_048_576;

/** Keeps a screen beside the log that it was drawn from: it is drawn from there on, not from the beginning. */
export async function writeCheckpoint(folder: string, screen: Screen): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(screen));
  if (bytes.length > maxBytes) return;
  try {
    await writeFile(`${folder}/screen.json.new`, bytes, { mode: 0o600 });
    await rename(`${folder}/screen.json.new`, `${folder}/screen.json`);
  } catch {
    // The disk is full, or the process is forgotten. It is drawn from the log alone.
  }
}

export async function readCheckpoint(folder: string): Promise<Screen | undefined> {
  try {
    const { position, cols, rows, data } = JSON.parse(await readPlainFile(folder, 'screen.json', maxBytes)) as Screen;
    const isSize = [cols, rows].every((side) => Number.isInteger(side) && side > 0 && side <= 1_000);
    return Number.isSafeInteger(position) && isSize && typeof data === 'string'
      ? { position, cols, rows, data }
      : undefined;
  } catch {
    return undefined;
  }
}
