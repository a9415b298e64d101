import { proxyActivities } from '@temporalio/workflow';
import type { HostActivities } from '../../activities/computers/hostActivities.ts';
import type { Activities } from '../../activities/main.ts';
import { codeOf } from '../actor.ts';
import { tellBadEnd } from '../outcome.ts';
import { promptly, rows } from '../retries.ts';

export interface SnapshotComputerInput {
  snapshotId: string;
  /** A host's queue is named by this prefix and the host's id. */
  queuePrefix: string;
  hostLostMs: number;
  heartbeatTimeoutMs: number;
}

const { lookAtSnapshot, failComputerSnapshot } = proxyActivities<Activities>(rows);

/** How many hosts are tried, one after the other, for a computer that moves meanwhile. */
const mostHosts = 20;

/** Saves the home of a computer as it is now, while the computer goes on, and gives that save its name. */
export async function snapshotComputer(input: SnapshotComputerInput): Promise<void> {
  const { snapshotId, queuePrefix, hostLostMs, heartbeatTimeoutMs } = input;
  for (let tried = 1; ; tried++) {
    const next = await lookAtSnapshot({ snapshotId });
    if (next.do === 'rest') return;
    const { takeSnapshot } = proxyActivities<HostActivities>({
      taskQueue: `${queuePrefix}${next.hostId}`,
      // A host that takes no work for so long is lost, or has lost the computer: the next look says so.
      scheduleToStartTimeout: hostLostMs,
      // A large home that was never saved takes long.
      startToCloseTimeout: '4 hours',
      heartbeatTimeout: heartbeatTimeoutMs,
      summary: next.hostId,
      // Gives up after two minutes, so that a snapshot is of the time for which it was asked.
      retry: { ...promptly, maximumAttempts: 30 },
    });
    const code = await codeOf(takeSnapshot({ snapshotId }));
    if (code === undefined) return;
    if ((code === 'COMPUTER_MOVED' || code === 'TIMED_OUT') && tried < mostHosts) continue;
    await failComputerSnapshot({ snapshotId, code });
    tellBadEnd('Snapshot', { status: 'failed', code });
    return;
  }
}
