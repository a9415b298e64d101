import { lookUntil } from '../../../../base/async.ts';
import { HostClient } from '../../hostClient.ts';
import { driverOf, type HostContext } from '../context.ts';
import { HostError } from '../hostErrors.ts';
import { computerLayout } from '../layout.ts';
import { type ComputerRecord, type ComputerRun, writeRecord } from '../records.ts';
import { isRunning, pauses } from './end.ts';

/** Whether the computer was ordered to pause and is frozen. */
export async function isPaused(context: HostContext, record: ComputerRecord): Promise<boolean> {
  return record.run?.pausedAt != null && (await driverOf(context, record).confinement.isFrozen(record));
}

export async function pause(context: HostContext, record: ComputerRecord): Promise<void> {
  const run = runningOf(record);
  if (await isPaused(context, record)) return;
  driverOf(context, record); // throws before anything is recorded
  // Record the order first: the next sweep thaws a computer that is frozen without an order.
  writeRecord(context.layout, { ...record, run: { ...run, pausedAt: new Date().toISOString() } });
  if (await freeze(context, record)) return tellHolder(context, record, true);
  await driverOf(context, record).confinement.thaw(record);
  writeRecord(context.layout, { ...record, run: { ...run, pausedAt: null } });
  throw new HostError('TIMED_OUT', `${record.computerId} could not be frozen in time`);
}

export async function resume(context: HostContext, record: ComputerRecord): Promise<void> {
  const run = runningOf(record);
  await driverOf(context, record).confinement.thaw(record);
  if (run.pausedAt !== null) writeRecord(context.layout, { ...record, run: { ...run, pausedAt: null } });
  await tellHolder(context, record, false);
}

/** Tells the holder, so that it stops the time limits of processes too. If this fails, they run on. */
async function tellHolder(context: HostContext, { computerId }: ComputerRecord, isPaused: boolean): Promise<void> {
  const client = new HostClient({ socketPath: computerLayout(context.layout, computerId).socket });
  await client.setPaused(isPaused).catch((error: unknown) => {
    context.log(
      'warn',
      { computerId, isPaused, error },
      'A holder could not be told that its computer was paused or resumed',
    );
  });
}

/** Repeats until the computer is frozen. Without cgroups, the next round catches a process that started meanwhile. */
export function freeze(context: HostContext, record: ComputerRecord): Promise<boolean> {
  const { confinement } = driverOf(context, record);
  const isFrozen = async () => {
    if (await confinement.isFrozen(record)) return true;
    await confinement.freeze(record);
    return confinement.isFrozen(record);
  };
  return lookUntil(isFrozen, Boolean, { ...pauses, forMs: context.deadlines.freezeMs });
}

function runningOf(record: ComputerRecord): ComputerRun {
  if (isRunning(record.run)) return record.run;
  throw new HostError('COMPUTER_NOT_RUNNING', `${record.computerId} does not run`);
}
