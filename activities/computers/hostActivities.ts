import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { type Computer, findComputer } from '../../models/computers/computer.ts';
import { beginRestore, noteSystem } from '../../models/computers/restoring.ts';
import { keepSnapshot, snapshotOrder } from '../../models/computers/snapshotting.ts';
import { imageToResolve, noteImage } from '../../models/environments/builds/resolving.ts';
import { keepStep, stepToSave } from '../../models/environments/builds/savedSteps.ts';
import { keepAlive } from '../keepAlive.ts';
import type { HostDeps } from './deps.ts';
import { replaceHome } from './fillHome.ts';
import type { HomeSaves } from './homeSaves.ts';
import { startOrdered } from './startOrdered.ts';

/** A computer, and one of its starts. */
export interface HostWork {
  computerId: string;
  generation: number;
}

/** A host's activities for workflows, on its own queue. Each may run twice, and refuses an older generation. */
export function createHostActivities(deps: HostDeps & { homeSaves: HomeSaves }) {
  const { database, host, computers, homeSaves, logger } = deps;

  /** Does the work with heartbeats, if the computer's row still orders it. */
  async function forOrdered(
    work: HostWork,
    isOrdered: (computer: Computer) => boolean,
    act: (computer: Computer, cancelled: AbortSignal) => Promise<unknown>,
  ): Promise<void> {
    using heartbeat = keepAlive();
    const { computerId, generation } = work;
    const computer = await findComputer(database, computerId);
    if (computer === undefined || computer.generation !== generation || !isOrdered(computer)) {
      throw refusal('NOT_ORDERED', 'This change of the computer is no longer wanted.');
    }
    heartbeat.cancelled.throwIfAborted();
    await act(computer, heartbeat.cancelled).catch((error: unknown) => failed(error, work));
  }

  function failed(error: unknown, work: object): never {
    if (error instanceof ApplicationFailure) throw error;
    logger.warn({ err: error, ...work }, 'The host could not carry out an order for a computer.');
    throw failureOf(error);
  }

  return {
    /** Starts it, or resumes it if it is paused. */
    startComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ status }) => status === 'starting',
        (computer, signal) => startOrdered(deps, computer, { signal }),
      ),

    /** Ends everything of this generation, and of earlier ones. */
    stopComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ status }) => status !== 'running' && status !== 'paused',
        ({ id, generation }) => host.stop(id, { generation }),
      ),

    pauseComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ wish }) => wish === 'pause',
        ({ id }) => host.pause(id),
      ),

    /** Makes the home of a copy. */
    forkComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ wish, forkedFrom }) => wish === 'fork' && forkedFrom !== null,
        async (computer, cancelled) => {
          const { limits } = await computers.orderOf(computer);
          await host.fork(computer.forkedFrom ?? '', { computerId: computer.id, limits }, cancelled);
        },
      ),

    /** Saves the home of a stopped computer for the last time before it leaves this host. */
    releaseComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ wish, status }) => wish === 'move' && (status === 'created' || status === 'stopped' || status === 'error'),
        ({ id }, cancelled) => homeSaves.release(id, cancelled),
      ),

    /**
     * Gives a stopped computer the home of a snapshot, after its own is saved and has a name. If it gets a new system
     * and keeps its home, both are saved too.
     */
    restoreComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ wish, status }) => wish === 'restore' && status !== 'stopping',
        async (computer, cancelled) => {
          if (!computer.restoreBegan) await homeSaves.release(computer.id, cancelled);
          const source = await beginRestore(database, computer.id);
          if (source === undefined) throw refusal('NOT_ORDERED', 'This restore is no longer wanted.');
          const { base, environmentVersionId } = source;
          const { limits } = await computers.orderOf({ ...computer, base, environmentVersionId });
          await replaceHome(deps, computer, source, { limits, signal: cancelled });
          if (!source.keepsHome) return;
          await noteSystem(database, computer.id);
          await homeSaves.release(computer.id, cancelled);
        },
      ),

    /** Saves a home as it is now, and names that save. */
    async takeSnapshot({ snapshotId }: { snapshotId: string }): Promise<void> {
      using heartbeat = keepAlive();
      const computerId = await snapshotOrder(database, snapshotId);
      if (computerId === undefined) return;
      const moved = () => refusal('COMPUTER_MOVED', 'This host does not have the computer any more.');
      try {
        if (!(await homeSaves.saveNow(computerId, heartbeat.cancelled))) throw moved();
        if (!(await keepSnapshot(database, snapshotId, host.hostId))) throw moved();
      } catch (error) {
        failed(error, { computerId, snapshotId });
      }
    },

    /** Asks a registry for the image that the build of an environment begins with, and notes the answer. */
    async resolveImage({ versionId }: { versionId: string }): Promise<void> {
      using heartbeat = keepAlive();
      const image = await imageToResolve(database, versionId);
      if (image === undefined) return;
      try {
        await noteImage(database, versionId, await host.resolveImage(image, heartbeat.cancelled));
      } catch (error) {
        heartbeat.cancelled.throwIfAborted();
        failed(error, { versionId, image });
      }
    },

    /** Saves what a step of the build of an environment has made. */
    async saveEnvironmentStep({ versionId, number }: { versionId: string; number: number }): Promise<void> {
      using heartbeat = keepAlive();
      const computerId = await stepToSave(database, versionId, number);
      if (computerId === undefined) return;
      const interrupted = () => refusal('BUILD_INTERRUPTED', 'This host does not have what the step has made.');
      try {
        if (!(await homeSaves.saveNow(computerId, heartbeat.cancelled))) throw interrupted();
        if (!(await keepStep(database, { versionId, number, hostId: host.hostId }))) throw interrupted();
        // Before the computer of the build goes.
        await homeSaves.keepVersions();
      } catch (error) {
        failed(error, { computerId, versionId });
      }
    },

    /** Removes everything of a deleted computer. */
    destroyComputer: (work: HostWork): Promise<void> =>
      forOrdered(
        work,
        ({ deletedAt }) => deletedAt !== null,
        ({ id }) => host.destroy(id),
      ),
  };
}

export type HostActivities = ReturnType<typeof createHostActivities>;

function refusal(code: string, message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: code, message, nonRetryable: true });
}

/**
 * A host's refusal is final. A timeout or any other failure is retried until the step is over. The details are in the
 * host's log, not in the history.
 */
function failureOf(error: unknown): ApplicationFailure {
  const isRefusal = error instanceof Error && (error.name === 'HostError' || error instanceof DomainError);
  const code = isRefusal ? (error as Error & { code: string }).code : undefined;
  const mayPass = code === 'TIMED_OUT' || (error instanceof DomainError && error.kind === 'unavailable');
  const nonRetryable = code !== undefined && !mayPass;
  return ApplicationFailure.create({ type: code ?? 'HOST_FAILED', message: code ?? 'HOST_FAILED', nonRetryable });
}
