import { DomainError } from '../../base/errors.ts';
import { purgeGitConnections } from '../../models/git/connections.ts';
import { dueInstallations, putOff } from '../../models/git/installationRows.ts';
import { syncInstallation } from '../../models/git/installations.ts';
import { keepAlive } from '../keepAlive.ts';
import type { Sweeps } from '../sweepEach.ts';
import type { GitDeps } from './ordered.ts';

const atOnce = 100;
/** After so many failures, the sweep stops asking a provider. */
const maxFailures = 3;
const putOffMs = 10 * 60_000;
/** Other sweeps wait for this one. The next one continues where it stopped. */
const longestMs = 60_000;

/** The sweeps for installations at a hosting provider. */
export function createHostingSweeps({ database, gitHosting, logger }: GitDeps) {
  return {
    /** Asks the provider about installations that it has notified us of, and about each one once a day. */
    async sweepGitInstallations(): Promise<{ asked: number; failed: number }> {
      using heartbeat = keepAlive();
      const report = { asked: 0, failed: 0 };
      const { provider } = gitHosting;
      if (provider === undefined) return report;
      const signal = AbortSignal.any([heartbeat.cancelled, AbortSignal.timeout(longestMs)]);
      const look = (id: string) => provider.installation(id, signal);
      for (const installation of await dueInstallations(database, provider.name, new Date(), atOnce)) {
        if (signal.aborted) break;
        report.asked += 1;
        try {
          await syncInstallation(database, installation, provider.gitHost, look);
        } catch (error) {
          heartbeat.cancelled.throwIfAborted();
          const { spaceId, installationId } = installation;
          logger.warn({ err: error, spaceId, installationId }, 'A git installation could not be looked at.');
          const wait = waitOf(error);
          await putOff(database, installation, new Date(Date.now() + Math.max(wait ?? 0, putOffMs)));
          report.failed += 1;
          if (wait !== undefined || report.failed >= maxFailures) break;
        }
      }
      heartbeat.cancelled.throwIfAborted();
      return report;
    },

    /** Removes connections that were not finished in time. */
    async purgeGitConnections(): Promise<number> {
      using heartbeat = keepAlive();
      return purgeGitConnections(database, new Date(), () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

/** How long the provider asks us to wait, if it does. */
function waitOf(error: unknown): number | undefined {
  if (!(error instanceof DomainError) || error.kind !== 'rateLimited') return undefined;
  return (error.retryAfterSeconds ?? 0) * 1_000;
}

export const hostingSweeps = {
  rescue: [],
  upkeep: ['sweepGitInstallations', 'purgeGitConnections'],
} as const satisfies Sweeps<keyof ReturnType<typeof createHostingSweeps>>;
