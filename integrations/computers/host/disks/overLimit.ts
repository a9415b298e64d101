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
  const limit = (readRecord(layout, computerId)?.limits.diskMiB ?? 0) * 1024 * 1024;
  return (await disks.usedBytes(computerLayout(layout, computerId).home)) > limit * tolerance;
}
