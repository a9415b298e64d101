import type { HostContext } from './context.ts';
import { until } from './deadline.ts';
import { isRunning } from './end.ts';
import { HostError } from './hostErrors.ts';
import { type ComputerRecord, type ComputerRun, writeRecord } from './records.ts';

/** Whether it stands still, by order. */
export function isPaused({ confinement }: HostContext, record: ComputerRecord): boolean {
  return record.run?.pausedAt != null && confinement.isFrozen(record);
}

export async function pause(context: HostContext, record: ComputerRecord): Promise<void> {
  const run = runningOf(record);
  if (isPaused(context, record)) return;
  // Written first: what is frozen without an order is let go by the next sweep.
  writeRecord(context.layout, { ...record, run: { ...run, pausedAt: new Date().toISOString() } });
  if (await freeze(context, record)) return;
  context.confinement.thaw(record);
  writeRecord(context.layout, { ...record, run: { ...run, pausedAt: null } });
  throw new HostError('TIMED_OUT', `${record.computerId} did not stand still in time`);
}

export async function resume(context: HostContext, record: ComputerRecord): Promise<void> {
  const run = runningOf(record);
  context.confinement.thaw(record);
  if (run.pausedAt !== null) writeRecord(context.layout, { ...record, run: { ...run, pausedAt: null } });
}

/** Without cgroups, what is started while others are being stopped is seen by the next look. */
export function freeze({ confinement, deadlines }: HostContext, record: ComputerRecord): Promise<boolean> {
  return until(() => {
    if (confinement.isFrozen(record)) return true;
    confinement.freeze(record);
    return confinement.isFrozen(record);
  }, deadlines.freezeMs);
}

export function runningOf(record: ComputerRecord): ComputerRun {
  if (isRunning(record.run)) return record.run;
  throw new HostError('COMPUTER_NOT_RUNNING', `${record.computerId} does not run`);
}
