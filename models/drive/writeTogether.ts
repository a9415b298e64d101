import type { Database } from '../database/database.ts';
import { knownFoldersOf } from './knownFolders.ts';
import type { UploadSession, WrittenFile } from './uploadSession.ts';
import type { Written } from './writeFile.ts';

/** What became of a file: where it is, or why it was refused. */
export type Outcome = Written | Error;

/**
 * Places small files that programs have written, in few transactions, one after another: each holds the drive's lock
 * until its end anyway, and one that waits would keep a connection from others. New files of a known folder go together
 * by a few statements. All others share a transaction. If one of those is refused, each is placed alone, so that no file
 * meets another's failure.
 */
export async function writeTogether(
  database: Database,
  session: UploadSession,
  files: readonly WrittenFile[],
): Promise<Map<WrittenFile, Outcome>> {
  const known = knownFoldersOf(database);
  const isForKnown = ({ write }: WrittenFile) =>
    write.known === undefined && known.folderWith(write.folderId) !== undefined;
  const outcomes = new Map<WrittenFile, Outcome>();
  const note = (placed: Iterable<[WrittenFile, Outcome]>) => {
    for (const [file, outcome] of placed) outcomes.set(file, outcome);
  };
  const left = () => files.filter((file) => !outcomes.has(file));
  // The first file of an unknown folder makes that known.
  note(await inOne(session, firstOfEach(files.filter((file) => !isForKnown(file)))));
  for (const ofFolder of Map.groupBy(left().filter(isForKnown), ({ write }) => write.folderId).values()) {
    note(await intoKnown(session, ofFolder));
  }
  note(await inOne(session, left()));
  return outcomes;
}

/** The files that were changed, and the first new file of each folder. */
function firstOfEach(files: readonly WrittenFile[]): WrittenFile[] {
  const seen = new Set<string>();
  return files.filter(({ write: { known, folderId } }) => {
    const isFirst = known !== undefined || !seen.has(folderId);
    if (known === undefined) seen.add(folderId);
    return isFirst;
  });
}

async function intoKnown(session: UploadSession, files: readonly WrittenFile[]): Promise<[WrittenFile, Outcome][]> {
  const placed = await Promise.all(files.map((file) => outcomeOf(session.writeKnown(file))));
  return files.flatMap((file, n) => {
    const outcome = placed[n];
    return outcome === undefined ? [] : [[file, outcome]];
  });
}

async function inOne(session: UploadSession, files: readonly WrittenFile[]): Promise<[WrittenFile, Outcome][]> {
  if (files.length === 0) return [];
  const together = await outcomeOf(session.writeAll(files));
  if (!(together instanceof Error)) return together.map((written, n) => [files[n] as WrittenFile, written]);
  if (files.length === 1) return files.map((file) => [file, together]);
  const outcomes: [WrittenFile, Outcome][] = [];
  for (const file of files) outcomes.push(...(await inOne(session, [file])));
  return outcomes;
}

/** The result of the work, or its failure as a result. */
export function outcomeOf<Result>(work: Promise<Result>): Promise<Result | Error> {
  return work.catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))));
}
