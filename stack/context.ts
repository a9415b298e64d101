import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Environment } from '../config/index.ts';
import type { Report } from './report.ts';

export type Durability = 'full' | 'relaxed';

/** Facts about a start that every part of the stack needs. */
export interface StackContext {
  /** `.atrium`: locks, logs, pid files, secrets. */
  dataDir: string;
  /** The folder of the services' data. The services' users can reach it. */
  servicesDir: string;
  /** Keeps built and downloaded programs for the next clone. */
  cacheDir: string;
  /** The caller's environment. Programs are found with it, and builds run with it. */
  environment: Environment;
  /**
   * `usual` takes each part's well-known port when it is free. `free` never does, so that tests stay out of the way.
   */
  ports: 'usual' | 'free';
  bucket: string;
  /** Further databases that Atrium's accounts may create and use, as GRANT names them, with wildcards. For tests. */
  furtherDatabases?: string[] | undefined;
  /**
   * With `relaxed`, the database may lose its last commits when it is killed, and the object store its last writes when
   * the machine loses power. For tests, which do not read them afterwards.
   */
  durability?: Durability | undefined;
  /** Whether the database's URL includes its Unix socket. A statement over the socket costs half as much. */
  databaseSocket?: boolean | undefined;
  report: Report;
  /** Called once a service has its process. */
  onLaunch?: (() => void) | undefined;
  /** Aborted when the start is given up. */
  signal: AbortSignal;
}

/** Folders with server programs and Go. A login shell often leaves them out of PATH. */
const furtherFolders = ['/usr/local/sbin', '/usr/sbin', '/usr/local/bin', '/usr/local/go/bin'];

/** The full path of a program, or undefined if the machine does not have it. */
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
