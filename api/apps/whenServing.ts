import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import { lastOf } from '../../base/text.ts';
import { collectOutput } from '../../integrations/computers/output/collectOutput.ts';
import { isOutput } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { isForPeople } from '../../models/apps/outcome.ts';
import { findRun, isActive, type Run } from '../../models/apps/run.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { logOf } from './runLog.ts';

type Deps = Pick<RouteDeps, 'database' | 'liveComputers' | 'secrets' | 'storage'>;

/** Enough to wake a computer, and for a framework's first build. */
const longestWaitMs = 60_000;
const patience = { firstMs: 50, mostMs: 1_000, forMs: longestWaitMs };
const lastWordsBytes = 2_000;
const lastWordsLength = 400;

/**
 * Resolves when a run's program answers on its port. Throws 502 `PREVIEW_ENDED` if it has ended for good, or twice, and
 * 504 `PREVIEW_NOT_LISTENING` if it takes too long, both with its last output. Throws 409 or 503 with the run's error
 * code if it could not be started.
 */
export async function whenServing(deps: Deps, { id, spaceId }: Run, port: number, gone: AbortSignal): Promise<void> {
  const look = async () => {
    const run = await findRun(deps.database, id);
    const diesAgain = run !== undefined && run.retryAt !== null && run.attempt >= 2;
    if (run === undefined || !isActive(run) || diesAgain) {
      if (run?.isStarted === false && run.errorCode !== null) throw neverBegun(run.errorCode, run.errorDetail ?? '');
      const why = run?.errorDetail ?? 'The run was ended.';
      throw new DomainError('upstream', 'PREVIEW_ENDED', `${why}${await lastWords(deps, run, gone)}`);
    }
    const { computerId } = run.spec.place;
    return { run, serves: run.isStarted && (await answers(deps, { spaceId, computerId }, port, gone)) };
  };
  const { run, serves } = await lookUntil(look, (last) => last.serves, { ...patience, signal: gone });
  if (serves) return;
  const detail = `Nothing listens on the port ${port} yet.${await lastWords(deps, run, gone)}`;
  throw new DomainError('upstreamTimeout', 'PREVIEW_NOT_LISTENING', detail);
}

/** Reports the error that kept the run from being started. */
function neverBegun(code: string, detail: string): DomainError {
  return new DomainError(isForPeople(code) ? 'conflict' : 'unavailable', code, detail);
}

async function answers(
  { liveComputers }: Deps,
  ref: { spaceId: string; computerId: string },
  port: number,
  gone: AbortSignal,
): Promise<boolean> {
  try {
    const connection = await (await liveComputers.asIs(ref)).dialPort(port, { signal: gone });
    connection.destroy();
    return true;
  } catch (error) {
    gone.throwIfAborted();
    if (error instanceof DomainError) return false;
    throw error;
  }
}

/** The end of its output, so that a person can see why it does not serve. */
async function lastWords(deps: Deps, run: Run | undefined, signal: AbortSignal): Promise<string> {
  if (run === undefined) return '';
  try {
    const log = await logOf(deps, run);
    const shown = log.records(Math.max(0, log.bytes - lastWordsBytes), { follow: false, signal });
    const { stdout, stderr } = await collectOutput(outputOf(shown), { maxBytes: lastWordsBytes });
    const text = lastOf((stdout + stderr).trim(), lastWordsLength);
    return text === '' ? ' The program has written no output.' : ` The last output of the program: ${text}`;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DomainError) return '';
    throw error;
  }
}

async function* outputOf(records: ReturnType<Awaited<ReturnType<typeof logOf>>['records']>) {
  for await (const record of records)
    if (record.kind !== 'attempt' && isOutput(record.kind)) yield record as OutputRecord;
}
