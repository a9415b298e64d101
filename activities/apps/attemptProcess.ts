import { setTimeout as delay } from 'node:timers/promises';
import { lookUntil } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import type { ComputerRef, LiveComputers } from '../../integrations/computers/liveComputers.ts';
import type { ProcessInfo } from '../../integrations/computers/types.ts';
import { currentAttempt } from '../../models/apps/attempts.ts';
import { processIdOf, type Run } from '../../models/apps/run.ts';
import type { Database } from '../../models/database/database.ts';

/** How long a process may take to end after SIGTERM. */
const graceMs = 5_000;
/** How long a killed process may take to end before the activity fails and is retried. */
const killPatience = { firstMs: 200, forMs: 10_000 };

interface Deps {
  database: Pick<Database, 'pool'>;
  liveComputers: Pick<LiveComputers, 'asIs' | 'settled'>;
}

export interface FoundProcess {
  client: HostClient;
  info: ProcessInfo;
}

/** Undefined if the computer runs without this process, or does not run. Throws if this is unknown. */
async function findProcess(
  liveComputers: Deps['liveComputers'],
  ref: ComputerRef,
  processId: string,
): Promise<FoundProcess | undefined> {
  try {
    await liveComputers.settled(ref);
    const client = await liveComputers.asIs(ref);
    return { client, info: await client.process(processId) };
  } catch (error) {
    if (error instanceof DomainError && (error.kind === 'notFound' || error.code === 'COMPUTER_NOT_RUNNING')) return;
    throw error;
  }
}

/**
 * The process of a run's current attempt. There is none before the computer is recorded as awake for it, because that
 * is recorded before the process is started.
 */
export async function processOf({ database, liveComputers }: Deps, run: Run): Promise<FoundProcess | undefined> {
  if (!run.isStarted && (await currentAttempt(database, run))?.awakeAt == null) return undefined;
  const ref = { spaceId: run.spaceId, computerId: run.spec.place.computerId };
  return findProcess(liveComputers, ref, processIdOf(run));
}

/**
 * Kills the process of an attempt that ends without it. Resolves when the process is over, or known not to exist.
 * Throws while this is unknown.
 */
export async function endProcessOf(deps: Deps, run: Run, stopped: AbortSignal): Promise<void> {
  const isOver = async () => {
    const found = await processOf(deps, run);
    if (found?.info.state !== 'running') return true;
    // It may have ended just now.
    await found.client.signalProcess(found.info.processId, 'SIGKILL').catch(() => undefined);
    return false;
  };
  if (await lookUntil(isOver, Boolean, { ...killPatience, signal: stopped })) return;
  throw new DomainError('unavailable', 'COMPUTER_NOT_ANSWERING', 'A process does not end.');
}

/** Ends the process once `unwanted` aborts: SIGTERM first. Resolves when the process is over. */
export async function killWhen(
  client: HostClient,
  processId: string,
  unwanted: AbortSignal,
  over: AbortSignal,
): Promise<void> {
  await new Promise<void>((resolve) => {
    if (unwanted.aborted || over.aborted) return resolve();
    unwanted.addEventListener('abort', () => resolve(), { once: true });
    over.addEventListener('abort', () => resolve(), { once: true });
  });
  for (let signal = 'SIGTERM'; !over.aborted; signal = 'SIGKILL') {
    // The process may have ended just now. A cut connection is made again.
    await client.signalProcess(processId, signal).catch(() => undefined);
    await delay(graceMs, undefined, { signal: over }).catch(() => undefined);
  }
}
