import { readdirSync, readFileSync, statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { treeOf } from '../../system/stamps.ts';
import type { HostContext } from '../context.ts';
import { computerLayout } from '../layout.ts';
import { readRecord } from '../records.ts';

/** A watched home may exceed its limit by this factor, because it is measured only from time to time. */
const tolerance = 1.1;

/** Whether a home is larger than its limit. Only a watched one can be. */
export async function isOverLimit(
  { disks, layout }: Pick<HostContext, 'disks' | 'layout'>,
  computerId: string,
): Promise<boolean> {
  if (disks.kind === 'limited') return false;
  const record = readRecord(layout, computerId);
  const limit = (record?.limits.diskMiB ?? 0) * 1024 * 1024;
  const { home } = computerLayout(layout, computerId);
  const init = record?.run?.phase === 'running' ? record.run.sandbox?.init : undefined;
  const pids = init === undefined ? [] : treeOf(init).map(({ pid }) => pid);
  return (await disks.usedBytes(home)) + (await heldBytes(pids, home)) > limit * tolerance;
}

const blockBytes = 512;

/**
 * The size of deleted files that processes still have open or mapped. They are in no folder, but may be large. Only
 * files on this folder's file system count; `/tmp` and the like are memory.
 */
async function heldBytes(pids: readonly number[], folder: string): Promise<number> {
  const device = statSync(folder).dev;
  const sizes = new Map<number, number>();
  for (const pid of pids) {
    for (const [inode, bytes] of mappedOf(pid, device)) sizes.set(inode, Math.max(bytes, sizes.get(inode) ?? 0));
  }
  for (const pid of pids) {
    for (const fd of ofProcess(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
      const stat = ofProcess(() => statSync(`/proc/${pid}/fd/${fd}`));
      if (stat?.isFile() && stat.nlink === 0 && stat.dev === device) sizes.set(stat.ino, stat.blocks * blockBytes);
    }
    await setImmediate();
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** How much of each deleted file a process has mapped, by inode. */
function mappedOf(pid: number, device: number): Map<number, number> {
  const sizes = new Map<number, number>();
  const maps = ofProcess(() => readFileSync(`/proc/${pid}/maps`, 'latin1')) ?? '';
  for (const line of maps.split('\n')) {
    if (!line.endsWith(' (deleted)')) continue;
    const [range = '', , , dev = '', inode] = line.split(/ +/);
    const [from = 0n, to = 0n] = range.split('-').map((address) => BigInt(`0x${address}`));
    if (deviceOf(dev) === device) sizes.set(Number(inode), (sizes.get(Number(inode)) ?? 0) + Number(to - from));
  }
  return sizes;
}

/** Converts a device such as `fd:01` to the number that `stat` gives. */
function deviceOf(text: string): number {
  const [major = 0, minor = 0] = text.split(':').map((part) => Number.parseInt(part, 16));
  return (minor & 0xff) + major * 0x100 + (minor >>> 8) * 0x100000;
}

/** Undefined if the process has ended or cannot be inspected, for example while it starts. */
function ofProcess<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
