import {
  ActivityCancellationType,
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
} from '@temporalio/workflow';
import type { HostActivities } from '../../activities/computers/hostActivities.ts';
import type { Activities, RunQueueActivities } from '../../activities/main.ts';
import type { BuildStep } from '../../models/environments/builds/builds.ts';
import { codeOf, type WorkOf } from '../actor.ts';
import { tellBadEnd } from '../outcome.ts';
import { patiently, promptly, rows } from '../retries.ts';

export interface BuildEnvironmentInput {
  versionId: string;
  /** The task queue of the activity that runs a step. */
  runQueue: string;
  /** A host's queue is named by this prefix and the host's id. */
  queuePrefix: string;
  stepMs: number;
  hostLostMs: number;
  heartbeatTimeoutMs: number;
}

/** Time for the computer to wake before a step, for the files that it copies, and for outages. */
const marginMs = 30 * 60_000;
/** Longer than a host waits for a registry. */
const resolveMs = 15 * 60_000;
/** How many hosts may be lost while they ask a registry. */
const mostResolves = 3;
/** How long a step waits for room for its computer. Its activity is tried again meanwhile. */
const queueMs = 12 * 60 * 60_000;

const { lookAtBuild, failBuild, cancelBuild, removeBuilder } = proxyActivities<Activities>(rows);

/**
 * Builds a version of an environment: runs its steps one by one on a computer of its own, and saves what each has made.
 * The computer is removed in any case.
 */
export async function buildEnvironment(input: BuildEnvironmentInput): Promise<void> {
  const { versionId } = input;
  try {
    const badEnd = await build(input);
    if (badEnd !== undefined) tellBadEnd('Build', badEnd);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => cancelBuild({ versionId }));
    tellBadEnd('Build', { status: 'cancelled' });
  }
  await CancellationScope.nonCancellable(() => removeBuilder({ versionId }));
}

async function build(input: BuildEnvironmentInput) {
  const { versionId } = input;
  for (let resolves = 0; ; ) {
    const next = await lookAtBuild({ versionId });
    if (next.do === 'rest') return next.badEnd;
    setCurrentDetails(next.do === 'resolve' ? 'resolve the image' : `${next.do} step ${next.number}`);
    const code = await codeOf(stepOf(input, next));
    if (next.do === 'resolve') resolves += 1;
    // The next look finds another host.
    const isHostLost = next.do === 'resolve' && code === 'TIMED_OUT' && resolves < mostResolves;
    if (code !== undefined && !isHostLost) await failBuild({ versionId, code });
  }
}

function stepOf(input: BuildEnvironmentInput, next: WorkOf<BuildStep>): Promise<void> {
  if (next.do === 'resolve') return resolve(input, next);
  return next.do === 'run' ? run(input, next) : save(input, next);
}

type Do<Name> = Extract<WorkOf<BuildStep>, { do: Name }>;

/** If its worker dies, the program goes on and the next worker reads on. The process has its own timeout. */
function run({ versionId, runQueue, stepMs, heartbeatTimeoutMs }: BuildEnvironmentInput, { number }: Do<'run'>) {
  const { runEnvironmentStep } = proxyActivities<RunQueueActivities>({
    taskQueue: runQueue,
    scheduleToCloseTimeout: stepMs + marginMs + queueMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: patiently,
  });
  return runEnvironmentStep({ versionId, number });
}

/** A registry may be slow, or wait for ever. The host gives up then. */
function resolve(input: BuildEnvironmentInput, { hostId }: Do<'resolve'>) {
  const { versionId, queuePrefix, hostLostMs, heartbeatTimeoutMs } = input;
  const { resolveImage } = proxyActivities<HostActivities>({
    taskQueue: `${queuePrefix}${hostId}`,
    scheduleToStartTimeout: hostLostMs,
    scheduleToCloseTimeout: resolveMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: hostId,
    retry: promptly,
  });
  return resolveImage({ versionId });
}

function save(input: BuildEnvironmentInput, { number, hostId }: Do<'save'>) {
  const { versionId, queuePrefix, hostLostMs, heartbeatTimeoutMs } = input;
  const { saveEnvironmentStep } = proxyActivities<HostActivities>({
    taskQueue: `${queuePrefix}${hostId}`,
    // A host that takes no work for so long is lost, and what the step has made with it.
    scheduleToStartTimeout: hostLostMs,
    // The first save of a system has all of it.
    startToCloseTimeout: '4 hours',
    heartbeatTimeout: heartbeatTimeoutMs,
    summary: hostId,
    retry: { ...promptly, maximumAttempts: 30 },
  });
  return saveEnvironmentStep({ versionId, number });
}
