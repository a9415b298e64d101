import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BackupError } from '../errors.ts';

const fileName = 'restore.json';

interface State {
  backup: string;
  /** Whether the parts were found empty: what is in them now, the restore has written. */
  wasEmpty: boolean;
  isDatabaseDone: boolean;
}

/** What a restore has begun in a data directory, so that one that was killed goes on. */
export interface Journal {
  /** Whether an earlier attempt may have written something. */
  isResumed: boolean;
  noteEmpty(): void;
  isDatabaseDone(): boolean;
  noteDatabase(): void;
  /** The restore is whole: Atrium may be started. */
  finish(): void;
}

/** Goes on with the restore of this backup. Throws {@link BackupError} where another one was begun. */
export function openJournal(dataDir: string, backup: string): Journal | undefined {
  const state = readState(dataDir);
  if (state === undefined) return undefined;
  if (state.backup === backup) return journalOf(dataDir, state);
  throw new BackupError(
    `A restore of the backup ${state.backup} was begun in ${dataDir} and has not finished. Give --backup ${state.backup} to go on, or remove ${dataDir} and begin anew.`,
  );
}

export function beginJournal(dataDir: string, backup: string): Journal {
  const state = { backup, wasEmpty: false, isDatabaseDone: false };
  write(dataDir, state);
  return journalOf(dataDir, state);
}

/** Throws {@link BackupError} where a restore has begun and not finished: what is there is a part of an installation. */
export function assertNoRestore(dataDir: string): void {
  const state = readState(dataDir);
  if (state === undefined) return;
  throw new BackupError(
    `A restore of the backup ${state.backup} was begun in ${dataDir} and has not finished. Run "atrium restore" again: it goes on.`,
  );
}

function journalOf(dataDir: string, state: State): Journal {
  return {
    isResumed: state.wasEmpty,
    noteEmpty() {
      state.wasEmpty = true;
      write(dataDir, state);
    },
    isDatabaseDone: () => state.isDatabaseDone,
    noteDatabase() {
      state.isDatabaseDone = true;
      write(dataDir, state);
    },
    finish: () => rmSync(join(dataDir, fileName), { force: true }),
  };
}

function readState(dataDir: string): State | undefined {
  const file = join(dataDir, fileName);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as State) : undefined;
}

function write(dataDir: string, state: State): void {
  const file = join(dataDir, fileName);
  writeFileSync(`${file}.new`, JSON.stringify(state), { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}
