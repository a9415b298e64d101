import { treeOf } from '../../system/stamps.ts';
import type { HostContext } from '../context.ts';
import { computerLayout } from '../layout.ts';
import { readRecord } from '../records.ts';
import { heldBytes } from './heldFiles.ts';

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
