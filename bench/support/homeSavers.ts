import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { findSystemProgram } from '../../integrations/computers/system/programs.ts';

/** Another program that saves folders, as it is used by hand. */
export interface HomeSaver {
  name: string;
  begin(store: string): void;
  /** Saves a folder as it is now. What the store has already is not stored again. */
  save(home: string, store: string): void;
  /** Restores a folder as it was saved last, into an empty folder. */
  restore(home: string, store: string, to: string): void;
}

const password = 'bench';

function run(program: string, args: readonly string[], env: Record<string, string> = {}): void {
  execFileSync(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'inherit'] });
}

const restic = (store: string, ...args: string[]) =>
  run('restic', ['--quiet', '--no-cache', '--repo', store, ...args], { RESTIC_PASSWORD: password });

const kopia = (store: string, ...args: string[]) =>
  run('kopia', [`--config-file=${join(store, 'config')}`, '--log-level=error', ...args], {
    KOPIA_PASSWORD: password,
    KOPIA_CHECK_FOR_UPDATES: 'false',
    KOPIA_CACHE_DIRECTORY: join(store, 'cache'),
    KOPIA_LOG_DIR: join(store, 'logs'),
  });

const all: readonly HomeSaver[] = [
  {
    name: 'rsync',
    begin() {},
    save: (home, store) => run('rsync', ['-aHAX', '--delete', `${home}/`, `${store}/`]),
    restore: (_, store, to) => run('rsync', ['-aHAX', `${store}/`, `${to}/`]),
  },
  {
    name: 'restic',
    begin: (store) => restic(store, 'init'),
    save: (home, store) => restic(store, 'backup', home),
    restore: (_, store, to) => restic(store, 'restore', 'latest', '--target', to),
  },
  {
    name: 'kopia',
    begin: (store) => kopia(store, 'repository', 'create', 'filesystem', `--path=${join(store, 'repository')}`),
    save: (home, store) => kopia(store, 'snapshot', 'create', home),
    restore: (home, store, to) => kopia(store, 'restore', '--snapshot-time=latest', home, to),
  },
];

/** Those on this machine (`apt-get install rsync restic`; kopia is a Go program), and the names of the others. */
export function homeSavers(): { found: HomeSaver[]; missing: string[] } {
  const isThere = ({ name }: HomeSaver) => findSystemProgram(name) !== undefined;
  return { found: all.filter(isThere), missing: all.filter((saver) => !isThere(saver)).map(({ name }) => name) };
}
