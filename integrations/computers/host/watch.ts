import type { HostContext } from './context.ts';
import { describeRoom, isScarce } from './disks/room.ts';
import { end, isRunning } from './end.ts';
import type { Lanes } from './lanes.ts';
import { computerLayout } from './layout.ts';
import { holdsTooMuchNetlink } from './netlink.ts';
import { type ComputerRun, listRecords, readRecord } from './records.ts';

/** Of a watched home: a little over the limit is a matter of when it was looked at. */
const tolerance = 1.1;

/** Looks, as long as it is not stopped, whether what should run does, and whether what has no limit of its own keeps within one. */
export function watch(context: HostContext, lanes: Lanes): { stop(): void } {
  const { deadlines, log } = context;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let wasScarce = false;
  const lookAtDisk = () => {
    const room = context.disks.room();
    if (isScarce(room) && !wasScarce) log('warn', { ...room }, `The host’s disk is nearly full: ${describeRoom(room)}`);
    wasScarce = isScarce(room);
  };
  const look = async () => {
    lookAtDisk();
    for (const { computerId, run } of listRecords(context.layout)) {
      if (stopped || run?.phase !== 'running' || lanes.isBusy(computerId)) continue;
      try {
        const reason = await reasonToEnd(context, computerId, run);
        if (reason !== undefined) await lanes.in(computerId, () => endUnasked(context, computerId, reason));
      } catch (error) {
        log('warn', { computerId, error }, 'A computer could not be looked after');
      }
    }
  };
  const again = () => {
    const failed = (error: unknown) => log('warn', { error }, 'The computers could not be looked after');
    timer = setTimeout(
      () =>
        void look()
          .catch(failed)
          .finally(() => !stopped && again()),
      deadlines.watchMs,
    );
    timer.unref();
  };
  again();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

async function reasonToEnd(context: HostContext, computerId: string, run: ComputerRun): Promise<string | undefined> {
  if (!isRunning(run)) return 'its holder ended without a word';
  const { sandbox } = run;
  if (sandbox !== null && context.uids !== undefined && holdsTooMuchNetlink(sandbox.init.pid)) {
    return 'it left too much unread in netlink sockets, which no limit of memory counts';
  }
  return (await isOverLimit(context, computerId)) ? 'its home is larger than its limit' : undefined;
}

async function endUnasked(context: HostContext, computerId: string, reason: string): Promise<void> {
  const record = readRecord(context.layout, computerId);
  if (record?.run?.phase !== 'running') return;
  const ended = await end(context, record, reason, 0);
  context.log('warn', { computerId, reason: ended.reason }, 'A computer has ended');
  context.options.onEnd?.(computerId, ended);
}

async function isOverLimit({ disks, layout }: HostContext, computerId: string): Promise<boolean> {
  if (disks.kind === 'limited') return false;
  const limit = (readRecord(layout, computerId)?.limits.diskMiB ?? 0) * 1024 * 1024;
  return (await disks.usedBytes(computerLayout(layout, computerId).home)) > limit * tolerance;
}
