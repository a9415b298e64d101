import type { HolderEnd } from '../../protocol/holderSpec.ts';
import type { HostContext } from '../context.ts';
import { isOverLimit } from '../disks/overLimit.ts';
import { describeRoom, isScarce } from '../disks/room.ts';
import type { FileSandboxes } from '../files/fileSandboxes.ts';
import type { Lanes } from '../lanes.ts';
import { holdsTooMuchNetlink } from '../machine/netlink.ts';
import { type ComputerRun, listRecords, readRecord } from '../records.ts';
import { Answering } from './answering.ts';
import { end, isRunning } from './end.ts';

/** Looks, as long as it is not stopped, whether what should run does, and whether what has no limit of its own keeps within one. */
export function watch(
  context: HostContext,
  lanes: Lanes,
  working: Pick<FileSandboxes, 'openIds' | 'close'>,
): { stop(): void } {
  const { deadlines, log } = context;
  const answering = new Answering(context);
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
      if (run?.phase !== 'running' || run.pausedAt !== null) answering.forget(computerId);
      if (run?.phase !== 'running') continue;
      await lookAt(computerId, async () => {
        const reason = await reasonToEnd(context, computerId, run);
        if (reason !== undefined) await lanes.in(computerId, () => endUnasked(context, computerId, reason));
        if (reason !== undefined || run.pausedAt !== null) return;
        const silent = await answering.look(computerId, run.spec.generation);
        if (silent !== undefined) await lanes.in(computerId, () => endSilent(context, computerId, silent));
      });
    }
    // Nothing else limits what is written beside a computer that does not run.
    for (const computerId of working.openIds) {
      await lookAt(computerId, async () => {
        if (!(await isOverLimit(context, computerId))) return;
        await lanes.in(computerId, () => working.close(computerId));
        log('warn', { computerId }, 'What worked on a computer’s files was ended: its home is larger than its limit');
      });
    }
  };
  const lookAt = async (computerId: string, work: () => Promise<void>) => {
    if (stopped || lanes.isBusy(computerId)) return;
    try {
      await work();
    } catch (error) {
      log('warn', { computerId, error }, 'A computer could not be looked after');
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

/** Unless it was paused meanwhile, which it has every right to be silent for. */
async function endSilent(context: HostContext, computerId: string, reason: string): Promise<void> {
  if (readRecord(context.layout, computerId)?.run?.pausedAt === null)
    await endUnasked(context, computerId, reason, 'COMPUTER_NOT_ANSWERING');
}

async function endUnasked(
  context: HostContext,
  computerId: string,
  reason: string,
  code?: HolderEnd['code'],
): Promise<void> {
  const record = readRecord(context.layout, computerId);
  if (record?.run?.phase !== 'running') return;
  const ended = await end(context, record, reason, 0, code);
  context.log('warn', { computerId, reason: ended.reason }, 'A computer has ended');
  context.options.onEnd?.(computerId, ended);
}
