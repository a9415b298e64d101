import { setTimeout as delay } from 'node:timers/promises';
import type { OutputRequest } from '../../integrations/computers/hostClient.ts';
import { maskedOutput } from '../../integrations/computers/maskedOutput.ts';
import { isOutput, positionAfter, RecordDecoder } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { findRun, getRun, isActive, processIdOf, type Run } from '../../models/apps/run.ts';
import { DomainError } from '../../models/errors.ts';
import type { RouteDeps } from '../frame/deps.ts';

type Deps = Pick<RouteDeps, 'database' | 'liveComputers' | 'secrets' | 'storage'>;

/** A run's log, of its last attempt, without the values of its space's secrets. */
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
  const { logKey, logBytes, spaceId } = run;
  const masks = () => deps.secrets.redactors.forSpace(spaceId);
  if (logKey !== null) {
    const open = ({ after = 0 }) => storedRecords(deps, logKey, after);
    return { bytes: logBytes ?? 0, records: (after, { signal }) => maskedOutput(open, masks, { after, signal }) };
  }
  if (!isActive(run)) {
    if (!run.isStarted) return { bytes: 0, records: nothing };
    throw new DomainError('gone', 'RUN_LOG_GONE', 'Its log was not kept.');
  }
  if (!run.isStarted) return { bytes: 0, records: (_after, options) => whenStarted(deps, run, options) };
  const client = await deps.liveComputers.asIs({ spaceId, computerId: run.spec.place.computerId });
  const processId = processIdOf(run);
  const { outputBytes } = await client.process(processId);
  const open = (request: OutputRequest) => client.output(processId, request);
  return { bytes: outputBytes, records: (after, options) => maskedOutput(open, masks, { after, ...options }) };
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
