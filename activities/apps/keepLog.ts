import { DomainError } from '../../base/errors.ts';
import { encodeRecord } from '../../integrations/computers/processes/records.ts';
import type { OutputRecord } from '../../integrations/computers/types.ts';
import { currentAttempt } from '../../models/apps/attempts.ts';
import type { Run } from '../../models/apps/run.ts';
import { closeAttempt } from '../../models/apps/steps.ts';
import { beginObject } from '../../models/drive/arrivingObject.ts';
import { isPassing } from '../passing.ts';
import type { AppDeps } from './deps.ts';

/** How long after its end an attempt waits for its log to be stored. */
const patienceMs = 5 * 60_000;

/**
 * Stores the log of an attempt whose end is recorded, and closes the attempt. The log may be lost, for example if the
 * space has no room or the computer is gone. The result may not. Passing errors are thrown, for a retry.
 */
export async function keepLogAndClose(
  { config, database, logger, storage }: Pick<AppDeps, 'config' | 'database' | 'logger' | 'storage'>,
  run: Run,
  records: (signal: AbortSignal) => Promise<AsyncIterable<OutputRecord>>,
  stopped: AbortSignal,
): Promise<void> {
  const of = { runId: run.id, attempt: run.attempt };
  const { endedAt = null, logBytes = null } = (await currentAttempt(database, run)) ?? {};
  if (endedAt === null || logBytes === null) return closeAttempt(database, of, null);
  const patience = AbortSignal.timeout(patienceMs);
  try {
    const { quotaBytes } = config.drive;
    await using log = await beginObject({ database, store: storage, quotaBytes }, run.spaceId);
    const { objectKey, reserve } = log;
    const bytes = recordBytes(await records(AbortSignal.any([stopped, patience])));
    const { sha256 } = await storage.write(objectKey, bytes, {
      fileName: 'log',
      maxBytes: Number.MAX_SAFE_INTEGER,
      reserve,
    });
    await closeAttempt(database, of, { objectKey, sha256 });
  } catch (error) {
    stopped.throwIfAborted();
    if (isPassing(error) && Date.now() - endedAt.getTime() < patienceMs) throw error;
    if (!(error instanceof DomainError)) logger.error({ err: error, runId: run.id }, 'The log of a run was not kept.');
    await closeAttempt(database, of, null);
  }
}

/** A log in its stored form: the records as they come from the computer. */
async function* recordBytes(records: AsyncIterable<OutputRecord>): AsyncGenerator<Buffer> {
  for await (const record of records) yield encodeRecord(record);
}
