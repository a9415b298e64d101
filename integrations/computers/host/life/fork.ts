import { existsSync } from 'node:fs';
import type { ComputerLimits } from '../../types.ts';
import { driverOf, type HostContext } from '../context.ts';
import { isDiskFull, unfinished } from '../disks/disks.ts';
import { HostError } from '../hostErrors.ts';
import type { Lanes } from '../lanes.ts';
import { computerLayout, isComputerId } from '../layout.ts';
import { giveFolder, makeComputerDir } from '../machine/setUp.ts';
import { usersFor } from '../machine/systems.ts';
import { type ComputerRecord, readRecord, writeRecord } from '../records.ts';
import { isRunning } from './end.ts';
import { freeze, isPaused } from './pause.ts';
import { ownerOf, requireRoom, startFailure } from './start.ts';

interface ForkTarget {
  computerId: string;
  limits: ComputerLimits;
}

/** Runs `work` on the source while no other task changes it. */
export type InSource = (
  work: (source: ComputerRecord, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
) => Promise<void>;

/**
 * Makes a new computer with a copy of another's home at one moment. Only the snapshot holds up the source. The rest
 * takes longer the more files there are. A cancelled fork leaves nothing.
 */
export async function fork(
  context: HostContext,
  inSource: InSource,
  to: ForkTarget,
  signal: AbortSignal,
): Promise<void> {
  const { layout, disks } = context;
  if (!isComputerId(to.computerId)) throw new HostError('COMPUTER_ABSENT', 'that is no id of a computer');
  const paths = computerLayout(layout, to.computerId);
  if (existsSync(paths.home)) return; // a finished copy appears as a whole
  requireRoom(context);
  makeComputerDir(paths.dir);
  let record: ComputerRecord | undefined;
  try {
    await inSource(async (source, sourceSignal) => {
      record = recordOf(context, to, source);
      writeRecord(layout, record);
      const copy = () => disks.snapshot(computerLayout(layout, source.computerId).home, paths.home, sourceSignal);
      if (disks.kind === 'limited') await copy();
      else await whileFrozen(context, source, copy);
    }, signal);
    const limitMiB = to.limits.diskMiB;
    if (record === undefined) throw new Error('the source was not copied');
    await disks.finish(paths.home, { ...ownerOf(record), limitMiB, signal });
    for (const folder of [paths.processes, paths.run]) giveFolder(folder, record.uid);
  } catch (error) {
    await disks.remove(unfinished(paths.home));
    throw isDiskFull(error) ? startFailure(error) : error;
  }
}

/** The copy has a volume of the same kind as the source has at this moment. */
function recordOf(context: HostContext, { computerId, limits }: ForkTarget, source: ComputerRecord): ComputerRecord {
  const { layout, uids } = context;
  const { base, run } = source;
  const known = readRecord(layout, computerId);
  const isAlike = known !== undefined && known.base === base;
  if (!isAlike && known?.uid != null) uids?.free(known.uid); // an attempt that was cut off, before the source changed
  const uid = isAlike ? known.uid : (usersFor(context, { base })?.take(computerLayout(layout, computerId).dir) ?? null);
  return {
    computerId,
    uid,
    ...(base && { base }),
    limits,
    run: null,
    spaceId: run?.spec.spaceId ?? source.spaceId ?? '',
  };
}

/** Runs `work` in the lane of a computer. A stop of that computer cancels it with a retryable error. */
export async function inLaneOf<T>(
  lanes: Lanes,
  computerId: string,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  try {
    return await lanes.until(computerId, work, signal);
  } catch (error) {
    // A stop cancels other tasks with this error.
    if (signal.aborted || !(error instanceof HostError) || error.code !== 'START_FAILED') throw error;
    throw new HostError('TIMED_OUT', `${computerId} was stopped while its home was copied`);
  }
}

/** Freezes the source during an ordinary copy. If this process dies, a sweep thaws the source. */
async function whileFrozen(context: HostContext, record: ComputerRecord, work: () => Promise<void>): Promise<void> {
  if (!isRunning(record.run) || (await isPaused(context, record))) return work();
  try {
    if (!(await freeze(context, record))) {
      throw new HostError('TIMED_OUT', `${record.computerId} could not be frozen in time`);
    }
    await work();
  } finally {
    await driverOf(context, record).confinement.thaw(record);
  }
}
