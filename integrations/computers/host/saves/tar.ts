import { readdirSync, statSync, utimesSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { run } from '../../spawner/spawner.ts';
import { patiently } from '../../spawner/streams.ts';
import { openPack } from '../../system/tar.ts';
import type { HostContext } from '../context.ts';
import { seeingAll } from '../disks/watched.ts';
import { computerLayout } from '../layout.ts';
import { saveFolder, saveIdsOf } from './folders.ts';
import type { SaveFormat } from './saves.ts';

const lookTimeoutMs = 10 * 60_000;

/** Saves homes that are ordinary folders, while they are used. The folder of a save only says when it was taken. */
export function tarSaves({ layout, log }: Pick<HostContext, 'layout' | 'log'>): SaveFormat {
  return {
    name: 'tar',
    async changed(computerIds) {
      const found: string[] = [];
      for (const computerId of computerIds) {
        const folders = saveIdsOf(layout, computerId).map((saveId) => saveFolder(layout, computerId, saveId));
        const newest = folders.toSorted((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
        const { home } = computerLayout(layout, computerId);
        // If the clock was set back since, changes are older than the folder.
        const isKnown = newest !== undefined && statSync(newest).mtimeMs <= Date.now();
        if (!isKnown || (await isChanged(home, newest))) found.push(computerId);
      }
      return found;
    },
    // After the clock was set back, earlier saves would look newer than this one.
    async keep(_home, folder) {
      const all = dirname(folder);
      for (const name of readdirSync(all)) {
        if (name !== basename(folder)) utimesSync(join(all, name), 0, 0);
      }
    },
    async open({ home }, signal) {
      const leaveOut = () => log('warn', { home }, 'A file of a home may not be read, and is not saved');
      return openPack(home, { signal, leaveOut, through: [...patiently, ...(await seeingAll())] });
    },
  };
}

/** A file that vanishes meanwhile makes `find` fail, but its folder has changed then. */
const finding = ['sh', '-c', 'find "$1" -xdev -cnewer "$2" -print -quit || :', 'sh'];

async function isChanged(home: string, since: string): Promise<boolean> {
  const [program = 'sh', ...args] = [...(await seeingAll()), ...finding, home, since];
  return (await run(program, args, { timeoutMs: lookTimeoutMs })) !== '';
}
