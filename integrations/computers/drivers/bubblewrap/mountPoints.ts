import { lstatSync, mkdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { HostError } from '../../host/hostErrors.ts';
import { ifThere } from '../../system/ifThere.ts';

/**
 * Makes a root file system ready for mounts at these paths inside. Its tenant may have replaced each by a link, and
 * bwrap, which follows links, would mount on what they point to. Nothing in the root file system may run meanwhile.
 * Throws `START_FAILED` for a folder that is a link. A file that is a link is removed.
 */
export function requirePlainMountPoints(folder: string, paths: readonly string[]): void {
  for (const path of paths) {
    let at = folder;
    const names = path.split('/').filter(Boolean);
    for (const [index, name] of names.entries()) {
      at = join(at, name);
      const stat = ifThere(() => lstatSync(at));
      if (stat === undefined || stat.isDirectory()) continue;
      const isLast = index === names.length - 1;
      if (isLast && stat.isFile()) continue;
      if (isLast && stat.isSymbolicLink()) unlinkSync(at);
      else throw new HostError('START_FAILED', `/${names.slice(0, index + 1).join('/')} in it is no folder`);
    }
  }
  mkdirSync(join(folder, 'home', 'user'), { recursive: true });
}
