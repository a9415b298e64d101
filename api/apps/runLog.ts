import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { OutputRequest } from '../../integrations/computers/hostClient.ts';
import { maskedOutput } from '../../integrations/computers/output/maskedOutput.ts';
import { type Exit, noteOf, noteRecord } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { type Attempt, attemptsOf } from '../../models/apps/attempts.ts';
import { findRun, isActive, processIdOf, type Run } from '../../models/apps/run.ts';
import { type JoinedLog, type JoinedLogOptions, joinedLogPauses } from '../computers/processes/joinedLog.ts';
import type { ShownRecord } from '../computers/processes/streamOutput.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { storedRecords } from './storedRecords.ts';

type Deps = Pick<RouteDeps, 'database' | 'liveComputers' | 'secrets' | 'storage'>;

/**
 * The positions reserved for an attempt whose output length is unknown. A reader that has read part of its output then
 * continues after it, not within the next attempt.
 */
const unknownBytes = 2 ** 40;

/**
 * A run's log: the output of its attempts, one after the other, without the values of its space's secrets. Throws
 * 410 `RUN_LOG_GONE` if no attempt's log was kept.
 */
export async function logOf(deps: Deps, run: Run): Promise<JoinedLog<ShownRecord>> {
  const { attempts } = await withLogs(deps, run.id);
  const begun = attempts.filter(({ startedAt }) => startedAt !== null);
  if (!isActive(run) && begun.length > 0 && begun.every(({ logKey }) => logKey === null)) {
    throw new DomainError('gone', 'RUN_LOG_GONE', 'The log of this run was not stored.');
  }
  let bytes = 0;
  for (const attempt of attempts) bytes += attempt.endedAt === null ? await outputBytes(attempt) : lengthOf(attempt);
  return { bytes, records: (after, options) => recordsOf(deps, run, after, options) };

  async function outputBytes({ attempt, startedAt }: Attempt): Promise<number> {
    if (startedAt === null) return 0;
    const { spaceId, spec } = run;
    const client = await deps.liveComputers.asIs({ spaceId, computerId: spec.place.computerId });
    return (await client.process(processIdOf({ id: run.id, attempt }))).outputBytes;
  }
}

async function* recordsOf(deps: Deps, run: Run, after: number, options: JoinedLogOptions): AsyncGenerator<ShownRecord> {
  let begin = 0;
  let exit: Exit = { state: 'killed', exitCode: null, signal: null, killedBy: null };
  let former: Attempt | undefined;
  for (;;) {
    const attempt = await attemptAfter(deps, run.id, former?.attempt ?? 0, options);
    if (attempt === undefined) break;
    if (former !== undefined && begin >= after) yield markOf(begin, attempt, former);
    exit = exitOf(attempt);
    const from = Math.max(0, after - begin);
    for await (const record of attemptRecords(deps, run, attempt, from, options)) {
      if (record.kind === 'exit') exit = noteOf<Exit>(record);
      else yield { ...record, position: begin + record.position };
    }
    former = options.follow ? await whenEnded(deps, run.id, attempt, options.signal) : attempt;
    if (former === undefined) return;
    // Without `follow`, reading ends at the attempt that still runs.
    if (former.endedAt === null) return;
    begin += lengthOf(former);
  }
  if (options.follow) yield noteRecord('exit', Math.max(begin, after), exit);
}

/** A run with its attempts. One whose end is recorded counts as running here until its log is kept or given up. */
async function withLogs({ database }: Pick<Deps, 'database'>, runId: string) {
  // In this order, so that an attempt that begins, or a log that is kept, meanwhile is found.
  const run = await findRun(database, runId);
  const present = run?.status === 'running' && run.retryAt === null ? run.attempt : undefined;
  const attempts = await attemptsOf(database, runId);
  return { run, attempts: attempts.map((one) => (one.attempt === present ? { ...one, endedAt: null } : one)) };
}

/** The next attempt, once it has begun. Undefined if there is none and will be none. */
async function attemptAfter(
  deps: Deps,
  runId: string,
  number: number,
  { follow, signal }: JoinedLogOptions,
): Promise<Attempt | undefined> {
  const look = async () => {
    const { run, attempts } = await withLogs(deps, runId);
    const next = attempts.find(({ attempt }) => attempt > number);
    const begun = next !== undefined && (next.startedAt !== null || next.endedAt !== null) ? next : undefined;
    return { begun, mayBegin: follow && run !== undefined && isActive(run) };
  };
  const isDecided = ({ begun, mayBegin }: Awaited<ReturnType<typeof look>>) => begun !== undefined || !mayBegin;
  return (await lookUntil(look, isDecided, { ...joinedLogPauses, signal })).begun;
}

/** The attempt once it has ended and its log is kept. Undefined if its run is gone. */
function whenEnded(deps: Deps, runId: string, { attempt }: Attempt, signal: AbortSignal): Promise<Attempt | undefined> {
  return lookUntil(
    async () => (await withLogs(deps, runId)).attempts.find((one) => one.attempt === attempt),
    (found) => found === undefined || found.endedAt !== null,
    { ...joinedLogPauses, signal },
  );
}

/** The output of one attempt: from its computer until it has ended, then from the store. */
async function* attemptRecords(
  deps: Deps,
  { id, spaceId, spec }: Run,
  { attempt, endedAt, logKey, logBytes }: Attempt,
  after: number,
  options: JoinedLogOptions,
): AsyncGenerator<OutputRecord> {
  const masks = () => deps.secrets.redactors.forSpace(spaceId);
  if (endedAt === null) {
    const client = await deps.liveComputers.asIs({ spaceId, computerId: spec.place.computerId });
    const processId = processIdOf({ id, attempt });
    const open = (request: OutputRequest) => client.output(processId, request);
    yield* maskedOutput(open, masks, { after, ...options });
  } else if (logKey !== null) {
    // A run may have many attempts. The ones before the position are not read.
    if (after >= (logBytes ?? 0)) return;
    const open = (request: OutputRequest) => storedRecords(deps.storage, logKey, request.after ?? 0);
    yield* maskedOutput(open, masks, { after, signal: options.signal });
  } else if (logBytes !== null && logBytes > after) {
    yield noteRecord('gap', after, { droppedBytes: logBytes - after });
  }
}

function lengthOf({ startedAt, logBytes }: Attempt): number {
  return logBytes ?? (startedAt === null ? 0 : unknownBytes);
}

const killers: Record<string, Exit['killedBy']> = {
  RUN_TIMED_OUT: 'timeout',
  RUN_OUT_OF_MEMORY: 'memory',
  RUN_COMPUTER_STOPPED: 'stop',
};

/** How the attempt ended, if its log is not read or does not say so. */
function exitOf({ exitCode, endSignal: signal, errorCode }: Attempt): Exit {
  const state = exitCode !== null ? 'exited' : signal !== null ? 'killed' : 'lost';
  return { state, exitCode, signal, killedBy: killers[errorCode ?? ''] ?? null };
}

function markOf(position: number, { attempt }: Attempt, former: Attempt): ShownRecord {
  const { status, exitCode, endSignal: signal, errorCode, errorDetail } = former;
  const error = errorCode === null ? null : { code: errorCode, detail: errorDetail ?? '' };
  return { kind: 'attempt', position, attempt, after: { status, exitCode, signal, error } };
}
