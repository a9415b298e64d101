import { setTimeout as delay } from 'node:timers/promises';
import { isOutput, positionAfter, RecordDecoder } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { findRun, getRun, isActive, processIdOf, type Run } from '../../models/apps/run.ts';
import { DomainError } from '../../models/errors.ts';
import type { RouteDeps } from '../frame/deps.ts';

type Deps = Pick<RouteDeps, 'database' | 'liveComputers' | 'storage'>;

/** A run's log, of its last attempt. */
export interface RunLog {
  /** How much there is now. */
  bytes: number;
  /** From a position on; it waits for what comes where it is followed. */
  records(after: number, options: { follow: boolean; signal: AbortSignal }): AsyncIterable<OutputRecord>;
}

const firstLookMs = 50;
const longestLookMs = 1_000;

/** Where a run's log is now: on its computer until it has ended, then in the store. Throws 410 `RUN_LOG_GONE`. */
export async function logOf(deps: Deps, run: Run): Promise<RunLog> {
  const { logKey, logBytes } = run;
  if (logKey !== null) return { bytes: logBytes ?? 0, records: (after) => storedRecords(deps, logKey, after) };
  if (!isActive(run)) {
    if (!run.isStarted) return { bytes: 0, records: nothing };
    throw new DomainError('gone', 'RUN_LOG_GONE', 'Its log was not kept.');
  }
  if (!run.isStarted) return { bytes: 0, records: (_after, options) => whenStarted(deps, run, options) };
  const client = await deps.liveComputers.asIs({ spaceId: run.spaceId, computerId: run.spec.place.computerId });
  const processId = processIdOf(run);
  const { outputBytes } = await client.process(processId);
  return { bytes: outputBytes, records: (after, options) => client.output(processId, { after, ...options }) };
}

async function* nothing(): AsyncGenerator<OutputRecord> {}

/** Of a run that has not begun: what it puts out once it has. */
async function* whenStarted(
  deps: Deps,
  { id }: Run,
  { follow, signal }: { follow: boolean; signal: AbortSignal },
): AsyncGenerator<OutputRecord> {
  if (!follow) return;
  for (let waitMs = firstLookMs; ; waitMs = Math.min(waitMs * 1.4, longestLookMs)) {
    await delay(waitMs, undefined, { signal });
    const now = await findRun(deps.database, id);
    if (now === undefined) return;
    if (!now.isStarted && isActive(now)) continue;
    const log = await logOf(deps, await getRun(deps.database, id));
    return yield* log.records(0, { follow, signal });
  }
}

async function* storedRecords({ storage }: Deps, key: string, after: number): AsyncGenerator<OutputRecord> {
  const decoder = new RecordDecoder();
  const bytes = await storage.read(key);
  try {
    for await (const chunk of bytes) {
      for (const record of decoder.push(chunk as Buffer)) {
        const isOver = record.kind !== 'exit' && positionAfter(record) <= after;
        if (!isOver) yield from(record, after);
      }
    }
  } finally {
    bytes.destroy();
  }
}

/** What of a record comes after a position. */
function from(record: OutputRecord, after: number): OutputRecord {
  const { kind, position, payload } = record;
  if (!isOutput(kind) || position >= after) return record;
  return { kind, position: after, payload: payload.subarray(after - position) };
}
