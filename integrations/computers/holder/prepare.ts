import { mkdir, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { installBundle } from '../programs/installBundle.ts';
import { rehearsals } from './rehearsals.ts';
import { screenProgramName } from './screens/screenThread.ts';

const main = fileURLToPath(new URL('./main.ts', import.meta.url));
const screens = fileURLToPath(new URL('./screens/screenMain.ts', import.meta.url));

/**
 * Writes the holder’s program into a folder, complete when it returns; the answer is its command line. It is readable
 * for all: what a holder loads later, it loads as its computer’s user.
 */
export async function prepareHolder(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  await rm(`${folder}/${rehearsals}`, { recursive: true, force: true }); // of holders that were killed
  await installBundle(main, folder, 'holder.cjs');
  await installBundle(screens, folder, screenProgramName);
  return [process.execPath, `${folder}/holder.cjs`];
}
