import { existsSync } from 'node:fs';
import type { ComputerLimits } from '../types.ts';
import type { HostContext } from './context.ts';
import { isRunning } from './end.ts';
import { HostError } from './hostErrors.ts';
import { computerLayout, isComputerId } from './layout.ts';
import { freeze, isPaused } from './pause.ts';
import { type ComputerRecord, readRecord, writeRecord } from './records.ts';
import { giveFolder, makeComputerDir } from './setUp.ts';

export interface ForkTarget {
  computerId: string;
  limits: ComputerLimits;
}

/** A new computer with the home of another, from one moment. */
export async function fork(context: HostContext, from: ComputerRecord, to: ForkTarget): Promise<void> {
  const { layout, disks, uids } = context;
  if (!isComputerId(to.computerId)) throw new HostError('COMPUTER_ABSENT', 'that is no id of a computer');
  const paths = computerLayout(layout, to.computerId);
  if (existsSync(paths.home)) return; // it arrives whole
  makeComputerDir(paths.dir);
  const known = readRecord(layout, to.computerId);
  const record: ComputerRecord = {
    computerId: to.computerId,
    uid: known === undefined ? (uids?.take(paths.dir) ?? null) : known.uid,
    limits: to.limits,
    run: null,
  };
  writeRecord(layout, record);
  const copy = () =>
    disks.fork(computerLayout(layout, from.computerId).home, paths.home, {
      uid: record.uid ?? undefined,
      limitMiB: to.limits.diskMiB,
    });
  if (disks.kind === 'limited') await copy();
  else await whileFrozen(context, from, copy);
  for (const folder of [paths.processes, paths.run]) giveFolder(folder, record.uid);
}

/** An ordinary copy takes its time, in which nothing may write. Should this process die, a sweep lets it go on. */
async function whileFrozen(context: HostContext, record: ComputerRecord, work: () => Promise<void>): Promise<void> {
  if (!isRunning(record.run) || isPaused(context, record)) return work();
  try {
    if (!(await freeze(context, record))) {
      throw new HostError('TIMED_OUT', `${record.computerId} did not stand still in time`);
    }
    await work();
  } finally {
    context.confinement.thaw(record);
  }
}
