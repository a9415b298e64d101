import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Environment } from '../config/index.ts';
import type { Report } from './report.ts';

export type Durability = 'full' | 'relaxed';

/** What every part of the stack needs to know of the start it belongs to. */
export interface StackContext {
  /** `.atrium`: locks, logs, pid files, secrets. */
  dataDir: string;
  /** Where the services keep their data: a folder that their own users can reach. */
  servicesDir: string;
  /** Programs that were built or downloaded, kept for the next clone. */
  cacheDir: string;
  /** The caller's environment: where programs are looked for, and what a build runs with. */
  environment: Environment;
  /**
   * `usual` takes each part's well-known port when it is free, `free` never does, so that tests stay out of the way.
   */
  ports: 'usual' | 'free';
  bucket: string;
  /** Further databases that Atrium's accounts may create and use, as GRANT names them, with wildcards. For tests. */
  furtherDatabases?: string[] | undefined;
  /**
   * Without `full`, the database may lose what was committed last when it is killed, and the object store what it took
   * last when the machine loses power: for tests, which have no use for it then.
   */
  durability?: Durability | undefined;
  /** Whether the database's address names its Unix socket too: a statement costs half as much over it. */
  databaseSocket?: boolean | undefined;
  report: Report;
  /** Called when a service has its process. */
  onLaunch?: (() => void) | undefined;
  /** Aborted when the start is given up. */
  signal: AbortSignal;
}

/** Folders that hold server programs and Go, and that a login shell often leaves out of PATH. */
const furtherFolders = ['/usr/local/sbin', '/usr/sbin', '/usr/local/bin', '/usr/local/go/bin'];

/** The full path of a program, or undefined when the machine does not have it. */
export function findProgram(name: string, environment: Environment): string | undefined {
  const folders = [...(environment.PATH ?? '').split(delimiter), ...furtherFolders].filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
