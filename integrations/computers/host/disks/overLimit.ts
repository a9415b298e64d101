import { readdirSync, readFileSync, statSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { treeOf } from '../../system/stamps.ts';
import type { HostContext } from '../context.ts';
import { computerLayout } from '../layout.ts';
import { readRecord } from '../records.ts';

/** Of a watched home: a little over the limit is a matter of when it was looked at. */
const tolerance = 1.1;

/** Whether a home is larger than its limit, where the file system itself does not keep it from that. */
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
 * What deleted files take that processes still have open, or in their memory: they are in no folder, and are as large as
 * any. Of files on the file system of this folder only; `/tmp` and its like are memory.
 */
export async function heldBytes(pids: readonly number[], folder: string): Promise<number> {
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
    // There may be thousands.
    await setImmediate();
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** How much of each deleted file a process has mapped. */
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

/** As `stat` gives it, of `fd:01`, say. */
function deviceOf(text: string): number {
  const [major = 0, minor = 0] = text.split(':').map((part) => Number.parseInt(part, 16));
  return (minor & 0xff) + major * 0x100 + (minor >>> 8) * 0x100000;
}

/** Undefined of a process that has ended, or that is not to be looked into, as one that is just being started. */
function ofProcess<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
