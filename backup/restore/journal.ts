import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { renameDurablySync, writeDurablySync } from '../../disk/durable.ts';
import { BackupError } from '../errors.ts';
import { differenceOf, type Targets } from './targets.ts';

const fileName = 'restore.json';
const finishedName = 'restored.json';

interface State {
  backup: string;
  /** The place of the backup, for the command that goes on. */
  from: string;
  keyFile: string;
  /**
   * The parts that were found empty. Anything in them now was written by the restore. Undefined until they were
   * checked.
   */
  targets?: Targets;
  isDatabaseDone: boolean;
}

/** Notes the progress of a restore in a data directory, so that a killed restore can go on. */
export interface Journal {
  /** Whether an earlier attempt may have written something. */
  isResumed: boolean;
  /** Throws {@link BackupError} if the earlier attempt wrote to other parts. These ones may hold other data. */
  assertSame(targets: Targets): void;
  noteEmpty(targets: Targets): void;
  isDatabaseDone(): boolean;
  noteDatabase(): void;
  /** Marks the restore as complete. Atrium may be started. */
  finish(): void;
  /** Removes the journal of a restore that has written nothing. */
  discard(): void;
}

/** Opens the journal of this backup's restore. Throws {@link BackupError} if another backup's restore has begun. */
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

/**
 * Throws {@link BackupError} if a restore has begun and not finished. The data directory holds only part of an
 * installation.
 */
export function assertNoRestore(dataDir: string): void {
  const found = findUnfinished(dataDir);
  if (found !== undefined) throw new BackupError(found);
}

/** Says that a restore has begun and not finished, and how to go on. */
export function findUnfinished(dataDir: string): string | undefined {
  const state = readState(dataDir);
  return state && unfinished(dataDir, state);
}

export function findRestored(dataDir: string): string | undefined {
  return readState(dataDir, finishedName)?.backup;
}

function unfinished(dataDir: string, { backup, from, keyFile }: State): string {
  const command = `npm run -s atrium -- restore --from ${quoted(from)} --key-file ${quoted(keyFile)} --backup ${backup}`;
  return `A restore of the backup ${backup} was begun in ${dataDir} and has not finished. Go on with it: ${command}`;
}

/** Quotes text for a shell. */
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
