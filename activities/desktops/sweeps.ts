import { forgetOldDesktops, type OpenDesktop, openDesktops } from '../../models/desktops/open.ts';
import { forgetOldRecordings, type OpenRecording, openRecordings } from '../../models/desktops/openRecordings.ts';
import type { RecordingStatus } from '../../models/desktops/recording.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { DesktopDeps } from './index.ts';

/** What a workflow that runs does without being told; of a wish, it may not have heard. */
const needsNoWord: readonly RecordingStatus[] = ['recording', 'saving'];

export function createDesktopSweeps({ config, database, logger, workflows }: DesktopDeps) {
  return {
    /** Starts the workflows of sessions that have none. */
    sweepDesktops: (): Promise<SweepReport> =>
      sweepEach<OpenDesktop>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => openDesktops(database, page),
        async well(sessions) {
          const running = await workflows.runningDesktops(sessions);
          return new Set([...running].filter(({ status }) => status === 'running').map(({ id }) => id));
        },
        look: async (session, isWell) => (isWell ? 'left' : asSwept(await workflows.startDesktop(session), 'started')),
      }),

    /** The same for recordings that are not settled. */
    sweepRecordings: (): Promise<SweepReport> =>
      sweepEach<OpenRecording>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => openRecordings(database, page),
        async well(recordings) {
          const running = await workflows.runningRecordings(recordings);
          return new Set([...running].filter(({ status }) => needsNoWord.includes(status)).map(({ id }) => id));
        },
        look: async (recording, isWell) =>
          isWell ? 'left' : asSwept(await workflows.startRecording(recording), 'started'),
      }),

    /** Forgets recordings that were settled long ago; their sessions after them. */
    async purgeOldRecordings(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return forgetOldRecordings(database, old, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Leaves nothing of sessions that ended long ago. */
    async purgeOldDesktops(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return forgetOldDesktops(database, old, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

export const desktopSweeps = {
  rescue: ['sweepDesktops', 'sweepRecordings'],
  upkeep: ['purgeOldRecordings', 'purgeOldDesktops'],
} as const satisfies Sweeps<keyof ReturnType<typeof createDesktopSweeps>>;
