import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { renameDurablySync, writeDurablySync } from '../../disk/durable.ts';
import { BackupError } from '../errors.ts';
import { differenceOf, type Targets } from './targets.ts';

const fileName = 'restore.json';
const finishedName = 'restored.json';

interface State {
  backup: string;
  /** Where it is, for whoever goes on. */
  from: string;
  keyFile: string;
  /** The parts that were found empty: what is in them now, the restore has written. Undefined until they were looked at. */
  targets?: Targets;
  isDatabaseDone: boolean;
}

/** What a restore has begun in a data directory, so that one that was killed goes on. */
export interface Journal {
  /** Whether an earlier attempt may have written something. */
  isResumed: boolean;
  /** Throws {@link BackupError} where the earlier attempt wrote to other parts: these may hold what is somebody's. */
  assertSame(targets: Targets): void;
  noteEmpty(targets: Targets): void;
  isDatabaseDone(): boolean;
  noteDatabase(): void;
  /** The restore is whole: Atrium may be started. */
  finish(): void;
  /** It has written nothing, and is none. */
  discard(): void;
}

/** Goes on with the restore of this backup. Throws {@link BackupError} where another one was begun. */
export function openJournal(dataDir: string, backup: string): Journal | undefined {
  const state = readState(dataDir);
  if (state === undefined) return undefined;
  if (state.backup === backup) return journalOf(dataDir, state);
  throw new BackupError(`${unfinished(dataDir, state)} To restore another one, remove ${dataDir} and begin anew.`);
}

export function beginJournal(
  dataDir: string,
  { backup, from, keyFile }: { backup: string; from: string; keyFile: string },
): Journal {
  const state: State = { backup, from, keyFile: resolve(keyFile), isDatabaseDone: false };
  write(dataDir, state);
  return journalOf(dataDir, state);
}

/** Throws {@link BackupError} where a restore has begun and not finished: what is there is a part of an installation. */
export function assertNoRestore(dataDir: string): void {
  const found = findUnfinished(dataDir);
  if (found !== undefined) throw new BackupError(found);
}

/** That a restore has begun and not finished, and how to go on, in words. */
export function findUnfinished(dataDir: string): string | undefined {
  const state = readState(dataDir);
  return state && unfinished(dataDir, state);
}

/** The backup that was restored into a data directory. */
export function findRestored(dataDir: string): string | undefined {
  return readState(dataDir, finishedName)?.backup;
}

function unfinished(dataDir: string, { backup, from, keyFile }: State): string {
  const command = `npm run -s atrium -- restore --from ${quoted(from)} --key-file ${quoted(keyFile)} --backup ${backup}`;
  return `A restore of the backup ${backup} was begun in ${dataDir} and has not finished. Go on with it: ${command}`;
}

/** For a shell. */
function quoted(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function journalOf(dataDir: string, state: State): Journal {
  return {
    isResumed: state.targets !== undefined,
    assertSame(targets) {
      const difference = differenceOf(state.targets ?? {}, targets);
      if (difference === undefined) return;
      throw new BackupError(
        `The restore that was begun in ${dataDir} goes on where it was begun alone: ${difference}. Nothing was changed. Give it the same settings as before, or another data directory to begin anew.`,
      );
    },
    noteEmpty(targets) {
      state.targets = targets;
      write(dataDir, state);
    },
    isDatabaseDone: () => state.isDatabaseDone,
    noteDatabase() {
      state.isDatabaseDone = true;
      write(dataDir, state);
    },
    finish: () => renameDurablySync(join(dataDir, fileName), join(dataDir, finishedName)),
    discard: () => rmSync(join(dataDir, fileName), { force: true }),
  };
}

function readState(dataDir: string, name = fileName): State | undefined {
  const file = join(dataDir, name);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as State) : undefined;
}

function write(dataDir: string, state: State): void {
  writeDurablySync(join(dataDir, fileName), JSON.stringify(state));
}
