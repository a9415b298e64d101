import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { HostActivities } from '../../activities/computers/hostActivities.ts';
import type { Activities } from '../../activities/main.ts';
import type { ComputerStep } from '../../models/computers/steps.ts';
import { type ActorInput, codeOf, live, type WorkOf } from '../actor.ts';
import { promptly, rowsLocally } from '../retries.ts';

export interface ComputerInput extends ActorInput {
  computerId: string;
  /** The name of a host's queue is this and the host's id. */
  queuePrefix: string;
}

type HostWork = WorkOf<ComputerStep>;

const { lookAtComputer, endComputerStep } = proxyLocalActivities<Activities>(rowsLocally);

/** How long a host may take to clear up after a start that has failed. If that is too short, the host's next beat does it. */
const clearUpTimeout = '20 seconds';

/**
 * One computer, from the moment somebody wants it until it rests: it does one step after the other on the computer's
 * host, and in between watches that it is used and paid for.
 */
export async function computer(input: ComputerInput): Promise<void> {
  const { computerId, heartbeatTimeoutMs, queuePrefix } = input;
  // The host does each thing once, however often it is asked. What it refuses fails at once.
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
    },
    async ended(step, code) {
      await endComputerStep({ ...which(step), step: step.do, ...(code !== undefined && { code }) });
      if (code !== undefined && step.do === 'start') await clearUp(step);
    },
    // A stop and a removal are what other steps are interrupted for.
    interruption: { code: 'COMPUTER_STOPPED', isFor: (step) => step.do !== 'stop' && step.do !== 'destroy' },
  });

  /** A computer that has failed half-way must not go on running. Nobody waits for that. */
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
