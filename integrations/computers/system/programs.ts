import { accessSync, constants } from 'node:fs';

/** Of the system, wherever this process’s PATH leads. */
const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** A program’s path, or undefined where the system does not have it. */
export function findSystemProgram(name: string): string | undefined {
  return folders
    .map((folder) => `${folder}/${name}`)
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
