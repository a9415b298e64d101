import { type Exit, type Gap, isOutput, noteOf, positionAfter } from '../processes/records.ts';
import type { OutputRecord } from '../types.ts';
import { StreamEnds } from './streamEnds.ts';

/** What a process has put out, as text. */
export interface CollectedOutput {
  /** A terminal’s output too. */
  stdout: string;
  stderr: string;
  /** Whether a part of either is left out, where the text says so. */
  truncated: boolean;
  /** How it ended; undefined when that has not been told. */
  exit: Exit | undefined;
  /** Where what comes next begins. */
  position: number;
}

/**
 * Reads output, and keeps the beginning and the end of each stream, of `maxBytes` together, in memory that depends on
 * neither the length of the output nor how it is cut into records. `onRecord` sees every record first.
 */
export async function collectOutput(
  records: AsyncIterable<OutputRecord>,
  { maxBytes, onRecord }: { maxBytes: number; onRecord?: (record: OutputRecord) => void },
): Promise<CollectedOutput> {
  const stdout = new StreamEnds(maxBytes);
  const stderr = new StreamEnds(maxBytes);
  let exit: Exit | undefined;
  let position = 0;
  for await (const record of records) {
    onRecord?.(record);
    position = positionAfter(record);
    if (isOutput(record.kind)) (record.kind === 'stderr' ? stderr : stdout).push(record.payload);
    else if (record.kind === 'gap') stdout.leaveOut(noteOf<Gap>(record).droppedBytes);
    else if (record.kind === 'exit') exit = noteOf<Exit>(record);
  }
  const truncated = stdout.isCut || stderr.isCut;
  return { stdout: stdout.text(), stderr: stderr.text(), truncated, exit, position };
}
