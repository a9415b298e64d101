import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * What to do where computers, which have users of their own, could not reach their folder. Undefined where they can; a
 * folder that is not there yet will be one that they can pass through.
 */
export function closedFolderAdvice(dir: string): string | undefined {
  let folder = resolve(dir);
  while (!existsSync(folder)) folder = dirname(folder);
  for (folder = realpathSync(folder); ; folder = dirname(folder)) {
    if (folder !== realpathIfThere(dir) && (statSync(folder).mode & 0o001) === 0) {
      return (
        `${folder} may be entered by root only, and each computer has a user of its own, who has to pass through it: ` +
        `set ATRIUM_COMPUTERS_DIR to a folder elsewhere, such as /var/lib/atrium/computers, or chmod o+x ${folder}`
      );
    }
    if (folder === dirname(folder)) return undefined;
  }
}

/** Its own mode is set by the host. */
function realpathIfThere(dir: string): string | undefined {
  return existsSync(dir) ? realpathSync(dir) : undefined;
}
