import { DomainError } from '../../base/errors.ts';
import { removeFolder } from '../../integrations/browsers/home/profileHome.ts';
import {
  foldersOf,
  forgetFolder,
  postponeFolder,
  type UnwantedFolder,
  unwantedFolders,
} from '../../models/browsers/folders.ts';
import { forgetOldBrowsers, type OpenBrowser, openBrowsers } from '../../models/browsers/open.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, type Swept, sweepEach } from '../sweepEach.ts';
import type { BrowserDeps } from './index.ts';

/** When a computer that cannot be reached is asked again. */
const againMs = 10 * 60_000;

export function createBrowserSweeps({ config, database, liveComputers, logger, workflows }: BrowserDeps) {
  return {
    /** Starts the workflows of sessions that have none. */
    sweepBrowsers: (): Promise<SweepReport> =>
      sweepEach<OpenBrowser>({
        logger,
        before: new Date(Date.now() - config.sweeper.graceSeconds * 1_000),
        page: (page) => openBrowsers(database, page),
        async well(sessions) {
          const running = await workflows.runningBrowsers(sessions);
          return new Set([...running].filter(({ status }) => status === 'running').map(({ id }) => id));
        },
        look: async (session, isWell) => (isWell ? 'left' : asSwept(await workflows.startBrowser(session), 'started')),
      }),

    /** Removes from the homes of computers what deleted profiles and ended sessions have left there. */
    sweepBrowserFolders: (): Promise<SweepReport> =>
      sweepEach<UnwantedFolder>({
        logger,
        before: new Date(),
        page: (page) => unwantedFolders(database, page),
        look: removeUnwanted,
      }),

    /** Leaves nothing of sessions that ended long ago. */
    async purgeOldBrowsers(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return forgetOldBrowsers(database, old, () => heartbeat.cancelled.throwIfAborted());
    },
  };

  async function removeUnwanted(unwanted: UnwantedFolder): Promise<Swept> {
    try {
      const client = await liveComputers.asIs(unwanted);
      for (const folder of foldersOf(unwanted.ownerId)) await removeFolder(client, folder);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      // With the computer, its home has gone.
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
