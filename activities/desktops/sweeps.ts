import { forgetOldDesktops, forgetOldRecordings, openDesktops, openRecordings } from '../../models/desktops/open.ts';
import { purgeOlder, type Sweeps, sweepActors } from '../sweepEach.ts';
import type { DesktopDeps } from './index.ts';

export function createDesktopSweeps(deps: DesktopDeps) {
  const { config, database, workflows } = deps;
  const { recordRetentionMs } = config.sweeper;
  return {
    /** Sessions that have not ended. */
    sweepDesktops: sweepActors(deps, {
      rows: openDesktops,
      tell: workflows.startDesktop,
      running: workflows.runningDesktops,
      needsNoWord: ({ status }) => status === 'running',
    }),

    /** Recordings that are not settled. */
    sweepRecordings: sweepActors(deps, {
      rows: openRecordings,
      tell: workflows.startRecording,
      running: workflows.runningRecordings,
      needsNoWord: ({ status }) => status === 'recording' || status === 'saving',
    }),

    /** Deletes recordings that were settled long ago. Their sessions follow later. */
    purgeOldRecordings: purgeOlder(recordRetentionMs, (before, onBatch) =>
      forgetOldRecordings(database, before, onBatch),
    ),

    /** Deletes sessions that ended long ago. */
    purgeOldDesktops: purgeOlder(recordRetentionMs, (before, onBatch) => forgetOldDesktops(database, before, onBatch)),
  };
}

export const desktopSweeps = {
  rescue: ['sweepDesktops', 'sweepRecordings'],
  upkeep: ['purgeOldRecordings', 'purgeOldDesktops'],
} as const satisfies Sweeps<keyof ReturnType<typeof createDesktopSweeps>>;
