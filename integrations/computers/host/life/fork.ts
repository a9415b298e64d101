import { existsSync } from 'node:fs';
import type { ComputerLimits } from '../../types.ts';
import { driverOf, type HostContext } from '../context.ts';
import { isDiskFull, unfinished } from '../disks/disks.ts';
import { HostError } from '../hostErrors.ts';
import type { Lanes } from '../lanes.ts';
import { computerLayout, isComputerId } from '../layout.ts';
import { giveFolder, makeComputerDir } from '../machine/setUp.ts';
import { type ComputerRecord, readRecord, writeRecord } from '../records.ts';
import { isRunning } from './end.ts';
import { freeze, isPaused } from './pause.ts';
import { requireRoom, startFailure } from './start.ts';

interface ForkTarget {
  computerId: string;
  limits: ComputerLimits;
}

/** Does something with the source that is one moment of it, while nothing else is done with that. */
export type InSource = (
  work: (source: ComputerRecord, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
) => Promise<void>;

/**
 * A new computer with the home of another, from one moment. Only that moment holds up the source; to make the copy the
 * new computer's takes as long as it has files. What is broken off leaves nothing.
 */
export async function fork(
  context: HostContext,
  inSource: InSource,
  to: ForkTarget,
  signal: AbortSignal,
): Promise<void> {
  const { layout, disks, uids } = context;
  if (!isComputerId(to.computerId)) throw new HostError('COMPUTER_ABSENT', 'that is no id of a computer');
  const paths = computerLayout(layout, to.computerId);
  if (existsSync(paths.home)) return; // it arrives whole
  requireRoom(context);
  makeComputerDir(paths.dir);
  const known = readRecord(layout, to.computerId);
  const record: ComputerRecord = {
    computerId: to.computerId,
    uid: known === undefined ? (uids?.take(paths.dir) ?? null) : known.uid,
    limits: to.limits,
    run: null,
  };
  writeRecord(layout, record);
  try {
    await inSource(async (source, sourceSignal) => {
      record.spaceId = source.run?.spec.spaceId ?? source.spaceId ?? '';
      writeRecord(layout, record);
      const copy = () => disks.snapshot(computerLayout(layout, source.computerId).home, paths.home, sourceSignal);
      if (disks.kind === 'limited') await copy();
      else await whileFrozen(context, source, copy);
    }, signal);
    const limitMiB = to.limits.diskMiB;
    await disks.finish(paths.home, { uid: record.uid ?? undefined, limitMiB, signal });
  } catch (error) {
    await disks.remove(unfinished(paths.home));
    throw isDiskFull(error) ? startFailure(error) : error;
  }
  for (const folder of [paths.processes, paths.run]) giveFolder(folder, record.uid);
}

/** That the source is wanted for something else ends no copy for good: it is made when it is asked for again. */
export async function inLaneOf(
  lanes: Lanes,
  from: string,
  work: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await lanes.in(from, (own) => work(AbortSignal.any([own, signal])));
  } catch (error) {
    // What a stop says to all that it does not wait for.
    if (signal.aborted || !(error instanceof HostError) || error.code !== 'START_FAILED') throw error;
    throw new HostError('TIMED_OUT', `${from} was stopped while it was copied`);
  }
}

/** An ordinary copy takes its time, in which nothing may write. Should this process die, a sweep lets it go on. */
async function whileFrozen(context: HostContext, record: ComputerRecord, work: () => Promise<void>): Promise<void> {
  if (!isRunning(record.run) || (await isPaused(context, record))) return work();
  try {
    if (!(await freeze(context, record))) {
      throw new HostError('TIMED_OUT', `${record.computerId} did not stand still in time`);
    }
    await work();
  } finally {
    await driverOf(context, record).confinement.thaw(record);
  }
}
