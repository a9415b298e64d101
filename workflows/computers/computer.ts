import { proxyActivities } from '@temporalio/workflow';
import type { HostActivities } from '../../activities/computers/hostActivities.ts';
import type { Activities } from '../../activities/main.ts';
import type { ComputerStep } from '../../models/computers/steps.ts';
import { type ActorInput, codeOf, live, type WorkOf } from '../actor.ts';
import { promptly, proxyRows } from '../retries.ts';

export interface ComputerInput extends ActorInput {
  computerId: string;
  /** A host's queue is named by this prefix and the host's id. */
  queuePrefix: string;
}

type HostWork = WorkOf<ComputerStep>;

/** Time limit for clearing up after a failed start. If it is too short, the host's next beat clears up. */
const clearUpTimeout = '20 seconds';

/**
 * The workflow of one computer, from an order until it rests. It takes one step after the other on the computer's host,
 * and in between watches that the computer is used and paid for.
 */
export async function computer(input: ComputerInput): Promise<void> {
  const { computerId, heartbeatTimeoutMs, queuePrefix } = input;
  const { lookAtComputer, endComputerStep } = proxyRows<Activities>();
  // The host does each thing once, even if asked again. Its refusals fail at once.
  const onHost = ({ generation, hostId, deadlineMs }: HostWork) =>
    proxyActivities<HostActivities>({
      taskQueue: `${queuePrefix}${hostId}`,
      scheduleToCloseTimeout: deadlineMs,
      heartbeatTimeout: heartbeatTimeoutMs,
      summary: `generation ${generation}, ${hostId}`,
      retry: promptly,
    });
  const which = ({ generation }: HostWork) => ({ computerId, generation });
  await live<ComputerStep>(input, {
    look: () => lookAtComputer({ computerId }),
    steps: {
      start: (step) => onHost(step).startComputer(which(step)),
      stop: (step) => onHost(step).stopComputer(which(step)),
      pause: (step) => onHost(step).pauseComputer(which(step)),
      fork: (step) => onHost(step).forkComputer(which(step)),
      destroy: (step) => onHost(step).destroyComputer(which(step)),
      release: (step) => onHost(step).releaseComputer(which(step)),
      restore: (step) => onHost(step).restoreComputer(which(step)),
    },
    async ended(step, code) {
      await endComputerStep({
        ...which(step),
        number: step.number,
        step: step.do,
        ...(code !== undefined && { code }),
      });
      if (code !== undefined && step.do === 'start') await clearUp(step);
    },
    // Other steps are interrupted for a stop or a removal, so those two are not interrupted.
    interruption: { code: 'COMPUTER_STOPPED', isFor: (step) => step.do !== 'stop' && step.do !== 'destroy' },
  });

  /** A computer that has failed half-way must not go on running. No caller waits for this. */
  async function clearUp(step: HostWork): Promise<void> {
    const { stopComputer } = proxyActivities<HostActivities>({
      taskQueue: `${queuePrefix}${step.hostId}`,
      scheduleToCloseTimeout: clearUpTimeout,
      heartbeatTimeout: heartbeatTimeoutMs,
      summary: 'clear up',
      retry: { ...promptly, maximumAttempts: 3 },
    });
    await codeOf(stopComputer(which(step)));
  }
}
