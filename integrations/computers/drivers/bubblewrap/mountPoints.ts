import { lstatSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../system/ifThere.ts';

/**
 * Makes a root file system ready for mounts at these paths inside. Its tenant may have put a link or something else at a
 * mount point, or at a folder above it: that gets the name `NAME.moved`. Nothing in the root file system may run
 * meanwhile. `isFolder` says whether what is mounted is a folder.
 */
export function clearMountPoints(folder: string, points: readonly { path: string; isFolder: boolean }[]): void {
  for (const { path, isFolder } of points) {
    let at = folder;
    const names = path.split('/').filter(Boolean);
    for (const [index, name] of names.entries()) {
      at = join(at, name);
      const stat = ifThere(() => lstatSync(at));
      if (stat === undefined) break;
      const isLast = index === names.length - 1;
      if (isLast && !isFolder ? !stat.isFile() : !stat.isDirectory()) {
        renameSync(at, freeName(`${at}.moved`));
        break;
      }
    }
  }
}

/** This path, or one with a number if something is there. */
export function freeName(path: string): string {
  for (let count = 1; ; count++) {
    const name = count === 1 ? path : `${path}${count}`;
    if (ifThere(() => lstatSync(name)) === undefined) return name;
  }
}

/** Makes the home folder if there is nothing at its place. What a tenant has put there stays. */
export function ensureHome(folder: string): void {
  const home = join(folder, 'home');
  const above = ifThere(() => lstatSync(home));
  if (above?.isDirectory() === false || ifThere(() => lstatSync(join(home, 'user'))) !== undefined) return;
  mkdirSync(join(home, 'user'), { recursive: true, mode: 0o755 });
}

/** The home folder in a root file system. Undefined if it, or the folder above it, is a link or no folder. */
export function plainHomeIn(folder: string): string | undefined {
  const home = join(folder, 'home');
  const path = join(home, 'user');
  const isPlain = [home, path].every((each) => ifThere(() => lstatSync(each))?.isDirectory() === true);
  return isPlain ? path : undefined;
}
