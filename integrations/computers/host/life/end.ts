import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { lookUntil } from '../../../../base/async.ts';
import type { Driver } from '../../drivers/driver.ts';
import { HostClient } from '../../hostClient.ts';
import type { HolderEnd } from '../../protocol/holderSpec.ts';
import { ifThere } from '../../system/ifThere.ts';
import { bootId, isAlive, killIfAlive, type Stamp } from '../../system/stamps.ts';
import { driverOf, type HostContext } from '../context.ts';
import { HostError, within } from '../hostErrors.ts';
import { computerLayout } from '../layout.ts';
import { type ComputerRecord, type ComputerRun, lastingOf, writeRecord } from '../records.ts';

type LiveRun = ComputerRun & { phase: 'running'; holder: Stamp };

/** Between two looks at processes that are ending or freezing. */
export const pauses = { firstMs: 1, mostMs: 50 };

/** Whether the computer runs: its holder lives. */
export function isRunning(run: ComputerRun | null | undefined): run is LiveRun {
  return run?.phase === 'running' && run.holder !== null && run.bootId === bootId() && isAlive(run.holder);
}

/**
 * Ends what a computer in any state has beside its files: its processes, its confinement, its way out, and its drive,
 * which would keep its volume in use. There is no other teardown: each end of a computer, or of a sandbox, calls it.
 */
export async function takeDown(
  context: HostContext,
  record: ComputerRecord,
  driver: Driver = driverOf(context, record),
): Promise<void> {
  // First, so that all that its programs have written is in the drive's program.
  await killAll(context, record, driver);
  await Promise.all([context.options.egress?.close(record.computerId), context.drives?.unmount(record.computerId)]);
}

/** Kills all processes of a computer in any state, until none is left, and removes its confinement. */
async function killAll(context: HostContext, record: ComputerRecord, { confinement }: Driver): Promise<void> {
  const { deadlines } = context;
  const ofThisBoot = record.run?.bootId === bootId() ? record : { ...record, run: null };
  // A dying process has left its cgroup but still holds memory and files, so it is waited for too.
  const seen = new Map<number, Stamp>();
  // A start that was cut off may have left a holder that is in no cgroup yet.
  const { holder = null } = ofThisBoot.run ?? {};
  if (holder !== null && isAlive(holder)) {
    seen.set(holder.pid, holder);
    killIfAlive(holder);
  }
  const isGone = () => {
    const left = confinement.left(ofThisBoot);
    for (const stamp of left) seen.set(stamp.pid, stamp);
    if (left.length > 0) confinement.kill(ofThisBoot);
    for (const stamp of seen.values()) if (!isAlive(stamp)) seen.delete(stamp.pid);
    return seen.size === 0 && confinement.left(ofThisBoot).length === 0 && confinement.remove(record.computerId);
  };
  const isCleared = () => lookUntil(isGone, Boolean, { ...pauses, forMs: deadlines.clearMs / 2 });
  if (await isCleared()) return;
  // A process that waits for an answer of its drive cannot be killed.
  await context.drives?.abort(record.computerId);
  if (await isCleared()) return;
  const pids = confinement.left(ofThisBoot).map(({ pid }) => pid);
  throw new HostError(
    'TIMED_OUT',
    `${record.computerId} still has ${pids.length} processes (${pids.slice(0, 10).join(', ')})`,
  );
}

/** Ends a computer and records why it ended. With a grace, its holder first ends it cleanly. */
export async function end(
  context: HostContext,
  record: ComputerRecord,
  reason: string,
  graceMs: number,
  code?: HolderEnd['code'],
): Promise<HolderEnd> {
  const { confinement } = driverOf(context, record);
  const { run } = record;
  if (run === null) throw new HostError('COMPUTER_NOT_RUNNING', `${record.computerId} was never started`);
  if (run.phase === 'ended' && run.end !== null) return run.end;
  const { holder } = run;
  if (graceMs > 0 && isRunning(run) && holder !== null) {
    if (run.pausedAt !== null) await confinement.thaw(record);
    await endInOrder(context, record);
    killIfAlive(holder, 'SIGTERM');
    // The holder applies the grace itself. It gets one more second to record its end.
    await lookUntil(() => !isAlive(holder), Boolean, { ...pauses, forMs: graceMs + 1_000 });
  }
  await takeDown(context, record);
  const { generation } = run.spec;
  const own = { generation, reason, at: new Date().toISOString() };
  // A holder that did not answer cannot say why it ended.
  const ended: HolderEnd = code === undefined ? (told(context, record) ?? own) : { ...own, code };
  const over: ComputerRun = { ...run, phase: 'ended', pausedAt: null, end: ended };
  writeRecord(context.layout, { ...lastingOf(record), limits: record.limits, run: over });
  return ended;
}

/** Lets `beforeEnd` finish. The computer ends even if this fails. */
async function endInOrder(
  { layout, options, deadlines, log }: HostContext,
  { computerId }: ComputerRecord,
): Promise<void> {
  const client = new HostClient({ socketPath: computerLayout(layout, computerId).socket });
  const ended = options.beforeEnd?.(client, AbortSignal.timeout(deadlines.closeMs));
  try {
    if (ended !== undefined) await within(ended, deadlines.closeMs, 'ending what ends in its own way');
  } catch (error) {
    log(
      'warn',
      { err: error, computerId },
      'Programs that end in their own way did not do so in time, and are ended with the computer',
    );
  }
}

/** The end that the holder recorded. It writes as the computer's user, so only its text is used. */
function told({ layout }: HostContext, { computerId, run }: ComputerRecord): HolderEnd | undefined {
  const text = ifThere(() => readPlainFile(computerLayout(layout, computerId).end));
  if (text === undefined) return undefined;
  try {
    const { generation, reason, at } = JSON.parse(text) as HolderEnd;
    if (generation !== run?.spec.generation || Number.isNaN(Date.parse(at))) return undefined;
    return { generation, reason: String(reason).slice(0, 500), at };
  } catch {
    return undefined;
  }
}

/** Reads a file in a folder that is not ours: follows no link, waits for no FIFO, reads nothing large. */
function readPlainFile(path: string): string | undefined {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    return stat.isFile() && stat.size < 10_000 ? readFileSync(descriptor, 'utf8') : undefined;
  } finally {
    closeSync(descriptor);
  }
}
