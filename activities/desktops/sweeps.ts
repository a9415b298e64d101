import { forgetOldDesktops, type OpenDesktop, openDesktops } from '../../models/desktops/open.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, sweepEach } from '../sweepEach.ts';
import type { DesktopDeps } from './deps.ts';

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

    /** Leaves nothing of sessions that ended long ago. */
    async purgeOldDesktops(): Promise<number> {
      using heartbeat = keepAlive();
      const old = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return forgetOldDesktops(database, old, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

export const desktopSweeps = ['sweepDesktops', 'purgeOldDesktops'] as const satisfies readonly (keyof ReturnType<
  typeof createDesktopSweeps
>)[];
