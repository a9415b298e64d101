import { DomainError } from '../../base/errors.ts';
import {
  foldersOf,
  forgetFolder,
  postponeFolder,
  type UnwantedFolder,
  unwantedFolders,
} from '../../models/browsers/folders.ts';
import { forgetOldBrowsers, openBrowsers } from '../../models/browsers/open.ts';
import { purgeOlder, type SweepReport, type Sweeps, type Swept, sweepActors, sweepEach } from '../sweepEach.ts';
import type { BrowserDeps } from './index.ts';

/** How long to wait before an unreachable computer is asked again. */
const againMs = 10 * 60_000;

export function createBrowserSweeps(deps: BrowserDeps) {
  const { config, database, liveComputers, logger, workflows } = deps;
  return {
    /** Sessions that have not ended. */
    sweepBrowsers: sweepActors(deps, {
      rows: openBrowsers,
      tell: workflows.startBrowser,
      running: workflows.runningBrowsers,
      needsNoWord: ({ status }) => status === 'running',
    }),

    /** Removes from the homes of computers what deleted profiles and ended sessions have left there. */
    sweepBrowserFolders: (): Promise<SweepReport> =>
      sweepEach<UnwantedFolder>({
        logger,
        before: new Date(),
        page: (page) => unwantedFolders(database, page),
        look: removeUnwanted,
      }),

    /** Deletes sessions that ended long ago. */
    purgeOldBrowsers: purgeOlder(config.sweeper.recordRetentionMs, (before, onBatch) =>
      forgetOldBrowsers(database, before, onBatch),
    ),
  };

  async function removeUnwanted(unwanted: UnwantedFolder): Promise<Swept> {
    try {
      const client = await liveComputers.asIs(unwanted);
      for (const folder of foldersOf(unwanted.ownerId)) await client.clearPath(folder);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      // The computer was deleted, and its home with it.
      if (error.code !== 'NOT_FOUND') {
        await postponeFolder(database, unwanted.id, new Date(Date.now() + againMs));
        return 'left';
      }
    }
    await forgetFolder(database, unwanted.id);
    return 'ended';
  }
}

export const browserSweeps = {
  rescue: ['sweepBrowsers'],
  upkeep: ['sweepBrowserFolders', 'purgeOldBrowsers'],
} as const satisfies Sweeps<keyof ReturnType<typeof createBrowserSweeps>>;
