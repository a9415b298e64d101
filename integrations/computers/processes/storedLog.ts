import type { OutputRecord, ProcessInfo } from '../types.ts';
import { type ReadableLog, readLog } from './logReader.ts';
import { type ProcessMeta, readMeta } from './processMeta.ts';
import { type Exit, noteOf, positionAfter, RecordDecoder } from './records.ts';
import { segmentsIn } from './segments.ts';

/** The log of a process without a holder. */
export function storedLog(folder: string, info: ProcessInfo): ReadableLog {
  const { state, exitCode, signal, killedBy, outputBytes } = info;
  return {
    segments: () => segmentsIn(folder),
    isOver: () => true,
    changed: () => Promise.resolve(),
    end: () => (state === 'running' ? 0 : outputBytes),
    exit: () => ({ state: state === 'running' ? 'lost' : state, exitCode, signal, killedBy }),
  };
}

/**
 * The description of a process, from disk alone. A process that was running when its holder died is `lost`, unless its
 * log has an end that the holder could not record in the description.
 */
export async function storedInfo(folder: string): Promise<ProcessMeta | undefined> {
  const meta = await readMeta(folder);
  if (meta === undefined || meta.info.state !== 'running') return meta;
  const { outputBytes, droppedBytes, exit } = await scan(folder, meta.info);
  const end: Exit = exit ?? { state: 'lost', exitCode: null, signal: null, killedBy: null };
  return { ...meta, info: { ...meta.info, ...end, outputBytes, droppedBytes } };
}

async function scan(folder: string, info: ProcessInfo) {
  const decoder = new RecordDecoder();
  let outputBytes = 0;
  let droppedBytes = 0;
  let exit: Exit | undefined;
  for await (const bytes of readLog(storedLog(folder, info), { after: 0, follow: false })) {
    for (const record of decoder.push(bytes)) {
      outputBytes = positionAfter(record);
      if (record.kind === 'gap') droppedBytes += positionAfter(record) - record.position;
      if (record.kind === 'exit') exit = noteOf<Exit>(record);
    }
  }
  return { outputBytes, droppedBytes, exit };
}

/** The records of an ended process from a position on. */
export async function* storedOutput(
  store: { log(processId: string): Promise<ReadableLog> },
  processId: string,
  { after = 0, signal }: { after?: number; signal?: AbortSignal },
): AsyncGenerator<OutputRecord, void, undefined> {
  const decoder = new RecordDecoder();
  for await (const bytes of readLog(await store.log(processId), { after, follow: false, ...(signal && { signal }) })) {
    yield* decoder.push(bytes);
  }
}
