import { ApplicationFailure } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { DomainError } from '../../base/errors.ts';
import type { HostClient } from '../../integrations/computers/hostClient.ts';
import { maskedOutput } from '../../integrations/computers/output/maskedOutput.ts';
import { type Exit, noteOf } from '../../integrations/computers/processes/records.ts';
import { getComputer } from '../../models/computers/computer.ts';
import { noteBuildWaits } from '../../models/environments/builds/builds.ts';
import { noteStepBegun, noteStepEnd, type StepEnd, stepToRun } from '../../models/environments/builds/runningSteps.ts';
import { isRunning, planOfStep, processIdOf } from '../../models/environments/builds/stepRows.ts';
import { builderOf, type Version } from '../../models/environments/version.ts';
import { standingOf } from '../../models/identity/authority.ts';
import { isAtLeast } from '../../models/identity/roles.ts';
import { keepAlive } from '../keepAlive.ts';
import { isKnownProcess } from '../knownProcess.ts';
import { isPassing } from '../passing.ts';
import { UnwantedWatch } from '../unwantedWatch.ts';
import type { EnvironmentDeps } from './deps.ts';
import { StepLog } from './stepLog.ts';
import { processOfStep, writeFiles } from './stepWork.ts';

interface Which {
  versionId: string;
  number: number;
}

/**
 * Runs a step of a build, or goes on with one that another worker began: the process id has the version's id and the
 * step's number, so it is started once. How the step ended is recorded together with its output.
 */
export function createRunStep(deps: EnvironmentDeps) {
  const { config, database, identity, liveComputers, logger, sealedLogs, secrets } = deps;

  return async function runEnvironmentStep(which: Which): Promise<void> {
    using heartbeat = keepAlive();
    const order = await stepToRun(deps, which);
    if (order === undefined) return;
    const { version } = order;
    const options = { logger, subject: { versionId: version.id }, intervalMs: watchIntervalMs };
    using watch = new UnwantedWatch(async () => !(await isAllowed(version)), options);
    const signal = AbortSignal.any([heartbeat.cancelled, watch.signal]);
    try {
      if (!(await isAllowed(version))) throw forbidden();
      const client = await computerFor(which, order);
      if (client === undefined) return;
      const end = await run(client, which, version, signal);
      if (end !== undefined) await noteStepEnd(deps, which, end);
    } catch (error) {
      heartbeat.cancelled.throwIfAborted();
      if (watch.signal.aborted) throw failureOf(forbidden());
      if (error instanceof DomainError && waited.includes(error.code)) throw await queued(which, error.code);
      if (error instanceof DomainError && error.code === 'COMPUTER_WAKES') throw later(error.code);
      logger.warn({ err: error, ...which }, 'A step of an environment could not be run.');
      throw failureOf(error);
    }
  };

  /** A build may take hours. Who asked for it must still be an editor of the space, and the API key valid. */
  async function isAllowed({ spaceId, createdBy: userId, apiKeyId }: Version): Promise<boolean> {
    const { role, keyHolds } = await standingOf(identity, { spaceId, userId, apiKeyId });
    return role !== undefined && isAtLeast(role, 'editor') && keyHolds;
  }

  /** The step is tried again, which keeps no worker busy, until there is room for its computer. */
  async function queued({ versionId }: Which, code: string): Promise<ApplicationFailure> {
    if (await noteBuildWaits(deps, versionId, code)) {
      logger.info({ versionId, code }, 'A build of an environment waits for room.');
    }
    return later(code);
  }

  /**
   * The computer, awake, in the start in which the step begins or has begun. Undefined if the step is not to be run any
   * more.
   */
  async function computerFor(
    which: Which,
    { version, isBegun, generation }: { version: Version; isBegun: boolean; generation: number | null },
  ): Promise<HostClient | undefined> {
    const builder = builderOf(version);
    const current = async () => (await getComputer(database, builder.spaceId, builder.computerId)).generation;
    if (isBegun) {
      // The files may be half changed.
      if ((await current()) !== generation) throw interrupted();
      return liveComputers.running(builder);
    }
    const by = { userId: version.createdBy, credentialId: null, address: null };
    const client = await liveComputers.awake(builder, by);
    const begunIn = await noteStepBegun(deps, { ...which, generation: await current() });
    if (begunIn !== undefined && (await current()) !== begunIn) throw interrupted();
    return begunIn === undefined ? undefined : client;
  }

  /** Undefined if the step is over meanwhile. */
  async function run(
    client: HostClient,
    which: Which,
    version: Version,
    signal: AbortSignal,
  ): Promise<StepEnd | undefined> {
    const { plan, files } = await planOfStep(database.pool, which);
    const processId = processIdOf(which);
    // Files that were written before may have another owner by now.
    if ('copy' in plan.step && !(await isKnownProcess(client, processId))) {
      const isOver = async () => !(await isRunning(database, which));
      if (!(await writeFiles(deps, client, plan.step.copy.to, files, { signal, isOver }))) return undefined;
    }
    const process = processOfStep(plan, files);
    if (process === undefined) return { exitCode: 0, logBytes: 0, sealedLog: null, sealedTail: null };
    await client.startProcess({ ...process, processId, timeoutMs: config.environments.stepMs });
    const masks = () => secrets.redactors.forSpace(version.spaceId);
    const log = new StepLog();
    let exit: Exit | undefined;
    const output = maskedOutput((wanted) => client.output(processId, wanted), masks, { follow: true, signal });
    for await (const record of output) {
      if (record.kind === 'exit') exit = noteOf<Exit>(record);
      else log.push(record);
    }
    if (exit === undefined) {
      throw new DomainError('unavailable', connectionLost, 'The connection to the computer was lost.');
    }
    const code = codeOf(exit);
    const of = { ...which, spaceId: version.spaceId };
    return {
      exitCode: exit.exitCode,
      code,
      logBytes: log.position,
      sealedLog: log.position === 0 ? null : await sealedLogs.seal(of, 'log', log.encoded()),
      sealedTail: code === undefined ? null : await sealedLogs.seal(of, 'tail', log.last()),
    };
  }
}

/** How often it is checked during a step whether the build is still allowed. */
const watchIntervalMs = 2_000;
const connectionLost = 'COMPUTER_CONNECTION_LOST';
/** Why the computer of a build cannot run yet. */
const waited = ['TOO_MANY_RUNNING', 'TOO_MUCH_MEMORY', 'NO_HOST'];
const queueLookMs = 5_000;

/** The step is tried again in a moment. That is expected, so it is not logged as a failure. */
function later(code: string): ApplicationFailure {
  const category = ApplicationFailureCategory.BENIGN;
  return ApplicationFailure.create({ type: code, message: code, nextRetryDelay: queueLookMs, category });
}

/** Why a step failed. Undefined if it succeeded. */
function codeOf({ state, exitCode, killedBy }: Exit): string | undefined {
  if (exitCode === 0) return undefined;
  if (killedBy === 'timeout') return 'STEP_TIMED_OUT';
  if (killedBy === 'memory') return 'STEP_OUT_OF_MEMORY';
  return killedBy === 'stop' || state === 'lost' ? 'BUILD_INTERRUPTED' : 'STEP_FAILED';
}

function forbidden(): DomainError {
  return new DomainError('forbidden', 'BUILD_FORBIDDEN', 'The user who asked for this build may not build any more.');
}

function interrupted(): DomainError {
  return new DomainError('conflict', 'BUILD_INTERRUPTED', 'The computer of the build was started anew.');
}

/** What passes by itself is tried again. The details are in the log, not in the history. */
function failureOf(error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  const code =
    error.kind === 'notFound'
      ? 'BUILDER_DELETED'
      : error.code === 'COMPUTER_NOT_RUNNING'
        ? 'BUILD_INTERRUPTED'
        : error.code;
  const nonRetryable = !isPassing(error) && error.code !== connectionLost;
  return ApplicationFailure.create({ type: code, message: code, nonRetryable });
}
