import type { SignalDefinition } from '@temporalio/common';
import type { Config } from '../../config/index.ts';
import type { Computer } from '../../models/computers/computer.ts';
import { computer, computerChangedSignal, computerInterruptedSignal } from '../../workflows/computers/computer.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey } from '../searchKeys.ts';
import { hostTaskQueue } from '../taskQueues.ts';
import { computerWorkflowId } from '../workflowIds.ts';

/** Which computer, taken from its row. */
export type ComputerReference = Pick<Computer, 'id' | 'spaceId'>;

export function createComputerLauncher(kit: LauncherKit, { installation, temporal }: Config) {
  const tell = ({ id, spaceId }: ComputerReference, signal: SignalDefinition): Promise<Reached> =>
    kit.startOrSignal(computer, signal, {
      workflowId: computerWorkflowId(id),
      args: [
        {
          computerId: id,
          queuePrefix: hostTaskQueue(installation, ''),
          heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
          maxHistoryEvents: temporal.maxHistoryEvents,
        },
      ],
      attributes: [
        { key: spaceIdKey, value: spaceId },
        { key: kindKey, value: 'computer' },
      ],
      summary: 'Computer',
      mayStartAgain: true,
    });

  return {
    /** Has a computer's workflow look at its row: starts it where it rests. */
    startComputer: (reference: ComputerReference) => tell(reference, computerChangedSignal),

    /** The same, without waiting for a start or a pause that is under way. */
    interruptComputer: (reference: ComputerReference) => tell(reference, computerInterruptedSignal),

    runningComputers: <Reference extends ComputerReference>(computers: readonly Reference[]) =>
      kit.running(computers, ({ id }) => computerWorkflowId(id)),
  };
}

export type ComputerLauncher = ReturnType<typeof createComputerLauncher>;
