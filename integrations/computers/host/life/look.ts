import { existsSync } from 'node:fs';
import { HostClient } from '../../hostClient.ts';
import { diskBytesOfStore } from '../../processes/logRoom.ts';
import { ifThere } from '../../system/ifThere.ts';
import type { ComputerMetrics, HostedState } from '../../types.ts';
import { driverOf, type HostContext } from '../context.ts';
import { within } from '../hostErrors.ts';
import { computerLayout } from '../layout.ts';
import { type ComputerRecord, isHosted } from '../records.ts';
import { isRunning } from './end.ts';
import { isPaused } from './pause.ts';

const holderMs = 5_000;

export async function inspect(context: HostContext, record: ComputerRecord | undefined): Promise<HostedState> {
  if (record === undefined || !isHosted(record)) return { state: 'absent' };
  const { run } = record;
  if (!isRunning(run)) return gone(context, record);
  const client = new HostClient({ socketPath: computerLayout(context.layout, record.computerId).socket });
  const { startedAt, lastActiveAt, runningProcesses } = await within(client.status(), holderMs, 'its holder’s answer');
  const state = (await isPaused(context, record)) ? 'paused' : 'running';
  return { state, generation: run.spec.generation, startedAt, lastActiveAt, runningProcesses };
}

/** A home that is missing, for example because the image was lost, must be filled again from its last save. */
function gone({ layout }: HostContext, { computerId, run }: ComputerRecord): HostedState {
  if (!existsSync(computerLayout(layout, computerId).home)) return { state: 'absent' };
  const code = run?.end?.code;
  return { state: 'gone', ...(code && { code }) };
}

/** Like `inspect`, for a list: a holder that does not answer counts as busy, and does not hold up the others. */
export async function inspectForList(context: HostContext, record: ComputerRecord): Promise<HostedState> {
  try {
    return await inspect(context, record);
  } catch {
    const { run } = record;
    if (!isRunning(run)) return gone(context, record);
    const now = new Date().toISOString();
    const { generation } = run.spec;
    // If the driver cannot be asked, the last order says whether the computer is paused.
    const paused = await isPaused(context, record).catch(() => run.pausedAt !== null);
    const state = paused ? 'paused' : 'running';
    return { state, generation, startedAt: run.startedAt ?? now, lastActiveAt: now, runningProcesses: 1 };
  }
}

export async function metrics(context: HostContext, record: ComputerRecord): Promise<ComputerMetrics> {
  const { disks, layout } = context;
  const { confinement } = driverOf(context, record);
  const paths = computerLayout(layout, record.computerId);
  const [diskBytes, logBytes] = await Promise.all([disks.usedBytes(paths.home), diskBytesOfStore(paths.processes)]);
  const nothing = { cpuSeconds: 0, memoryBytes: 0, memoryPeakBytes: 0, tasks: 0, oomKills: 0 };
  const usage = isRunning(record.run) ? ((await ifThere(() => confinement.usage(record))) ?? nothing) : nothing;
  return { ...usage, diskBytes, logBytes };
}
