import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { driverOf, type HostContext } from '../context.ts';
import { unfinished } from '../disks/disks.ts';
import type { FileSandboxes } from '../files/fileSandboxes.ts';
import type { Lanes } from '../lanes.ts';
import { computerLayout } from '../layout.ts';
import { type ComputerRecord, listComputerIds, readRecord, removeComputerDir, writeRecord } from '../records.ts';
import { syncHomes } from '../saves/btrfs.ts';
import { endSwap } from '../saves/fill.ts';
import type { Saves } from '../saves/saves.ts';
import { end, isRunning, takeDown } from './end.ts';

/**
 * Ends a computer and removes all of it. The order is recorded first, so that a sweep can finish an interrupted
 * removal.
 */
export async function destroy(context: HostContext, record: ComputerRecord): Promise<void> {
  const { layout, disks, uids } = context;
  writeRecord(layout, { ...record, removing: true });
  await takeDown(context, record);
  const { home } = computerLayout(layout, record.computerId);
  await disks.remove(unfinished(home));
  await disks.remove(home);
  // After a power cut, a home that came back without its record would stay for ever.
  if (disks.kind === 'limited') await syncHomes(layout.homes);
  removeComputerDir(layout, record.computerId);
  // The registry is one for single users and ranges.
  for (const uid of new Set([record.uid, record.nextUid, record.swap?.formerUid])) if (uid != null) uids?.free(uid);
}

/** Brings a computer in line with its record while no other task works on it. Undefined if it was in order. */
async function setRight(context: HostContext, record: ComputerRecord): Promise<string | undefined> {
  const { confinement } = driverOf(context, record);
  const { computerId, run } = record;
  if (record.removing === true) {
    await destroy(context, record);
    return `${computerId}: finished removing it`;
  }
  if (record.swap !== undefined) {
    await endSwap(context, record, new AbortController().signal);
    return `${computerId}: finished replacing its home`;
  }
  if (run === null) return undefined;
  const { phase } = run;
  if (isRunning(run)) {
    if (run.pausedAt !== null || !(await confinement.isFrozen(record))) return undefined;
    await confinement.thaw(record);
    return `${computerId}: thawed it, since it was frozen without an order`;
  }
  if (phase !== 'ended') {
    const { reason } = await end(context, record, endedReason(phase), 0);
    return `${computerId}: ended (${reason})`;
  }
  const left = confinement.left(record);
  if (left.length === 0) return undefined;
  await takeDown(context, record);
  return `${computerId}: killed ${left.length} leftover processes`;
}

const endedReason = (phase: 'starting' | 'running') =>
  phase === 'starting' ? 'its start was cut off' : 'its holder ended without a word';

/** What may use the homes. */
export interface Users {
  lanes: Lanes;
  saves: Pick<Saves, 'removeStrays' | 'endAll'>;
  sandboxes: FileSandboxes[];
}

/** Brings all computers in line with their records, and removes what belongs to none. Returns what it did. */
export async function sweep(context: HostContext, { lanes, saves, sandboxes }: Users): Promise<string[]> {
  const isInUse = (name: string) => lanes.isBusy(name) || sandboxes.some((each) => each.has(name));
  const done: string[] = [];
  for (const computerId of listComputerIds(context.layout)) {
    if (isInUse(computerId)) continue; // another task works on it
    const look = async () => {
      const record = readRecord(context.layout, computerId);
      return record && setRight(context, record);
    };
    // A failure at one computer must not keep the others from the sweep.
    const failed = (error: unknown) => `${computerId}: ${error instanceof Error ? error.message : String(error)}`;
    const did = await lanes.in(computerId, look).catch(failed);
    if (did !== undefined) done.push(did);
  }
  const strays = await removeStrays(context, lanes, isInUse);
  return [...done, ...strays, ...(await saves.removeStrays(isInUse))];
}

/** Removes confinements that belong to no computer, and unfinished copies. */
async function removeStrays(
  context: HostContext,
  lanes: Lanes,
  isBusy: (computerId: string) => boolean,
): Promise<string[]> {
  const { layout, disks } = context;
  const done: string[] = [];
  for (const driver of context.drivers.values()) {
    try {
      for (const computerId of await driver.confinement.list()) {
        const runs = () => readRecord(layout, computerId)?.run?.phase === 'running';
        if (isBusy(computerId) || runs()) continue;
        // In its lane, so that a start waits, and keeps its way out and its drive.
        await lanes.in(computerId, () =>
          takeDown(context, { computerId, uid: null, limits: noLimits, run: null }, driver),
        );
        done.push(`${computerId}: removed its leftover confinement`);
      }
    } catch (error) {
      // A silent engine must not stop the sweep.
      done.push(`${driver.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  for (const name of readdirSync(layout.homes)) {
    const suffix = unfinished('');
    const computerId = name.slice(0, -suffix.length);
    if (!name.endsWith(suffix) || isBusy(computerId)) continue;
    if (readRecord(layout, computerId)?.swap !== undefined) continue; // it is the only whole one
    await disks.remove(join(layout.homes, name));
    done.push(`${name}: removed an unfinished copy`);
  }
  return done;
}

const noLimits = { cpuMilli: 0, memoryMiB: 0, diskMiB: 0, maxTasks: 0, maxProcesses: 0, maxLogBytes: 0 };
