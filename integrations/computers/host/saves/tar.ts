import { existsSync, statSync, utimesSync } from 'node:fs';
import { run } from '../../spawner/spawner.ts';
import { patiently } from '../../spawner/streams.ts';
import { openPack } from '../../system/tar.ts';
import type { HostContext } from '../context.ts';
import { seeingAll } from '../disks/watched.ts';
import { computerLayout } from '../layout.ts';
import type { SaveFormat } from './saves.ts';
import { folderOfUse, note, saveIdsOf } from './snapshots.ts';

const lookTimeoutMs = 10 * 60_000;

/** Saves homes that are ordinary folders, while they are used. What a computer uses only says when it was taken. */
export function tarSaves({ layout, log }: Pick<HostContext, 'layout' | 'log'>): SaveFormat {
  const foldersOf = (computerId: string) =>
    saveIdsOf(layout, computerId).map((saveId) => folderOfUse(layout, computerId, saveId));
  return {
    name: 'tar',
    async changed(computerIds) {
      const found: string[] = [];
      for (const computerId of computerIds) {
        const newest = foldersOf(computerId).toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
        const { home } = computerLayout(layout, computerId);
        // If the clock was set back since, changes are older than the folder.
        const isKnown = newest !== undefined && statSync(newest).mtimeMs <= Date.now();
        if (!isKnown || (await isChanged(home, newest))) found.push(computerId);
      }
      return found;
    },
    async keep({ computerId, saveId }) {
      const use = folderOfUse(layout, computerId, saveId);
      if (!existsSync(use)) {
        // After the clock was set back, earlier saves would look newer than this one.
        for (const earlier of foldersOf(computerId)) utimesSync(earlier, 0, 0);
        await note(use);
      }
      return { takenAt: statSync(use).birthtime, kept: computerLayout(layout, computerId).home };
    },
    async open({ computerId }, signal) {
      const { home } = computerLayout(layout, computerId);
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
