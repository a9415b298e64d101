import {
  forgetOldDesktops,
  forgetOldRecordings,
  type OpenDesktop,
  type OpenRecording,
  openDesktops,
  openRecordings,
} from '../../models/desktops/open.ts';
import type { RecordingStatus } from '../../models/desktops/recording.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { DesktopDeps } from './index.ts';

/** With these statuses a running workflow needs no signal. With others, it may have missed one. */
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

    /** Starts the workflows of recordings that are not settled and have none. */
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

    /** Deletes the rows of recordings that were settled long ago. Their sessions follow. */
    async purgeOldRecordings(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return forgetOldRecordings(database, old, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Deletes the rows of sessions that ended long ago. */
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
