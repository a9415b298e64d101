import { purgeGitConnections } from '../../models/git/connections.ts';
import { dueInstallations, putOff } from '../../models/git/installationRows.ts';
import { syncInstallation } from '../../models/git/installations.ts';
import { keepAlive } from '../keepAlive.ts';
import type { GitDeps } from './deps.ts';

const atOnce = 100;
/** A provider that does not answer is not asked about all the others, too. */
const maxFailures = 3;
const putOffMs = 10 * 60_000;

/** What the sweeper does for installations at a hosting provider. */
export function createHostingSweeps({ database, gitHosting, logger }: GitDeps) {
  return {
    /** Asks about those that the provider has told of, and those that it was last asked about a day ago. */
    async sweepGitInstallations(): Promise<{ asked: number; failed: number }> {
      using heartbeat = keepAlive();
      const report = { asked: 0, failed: 0 };
      const { provider } = gitHosting;
      if (provider === undefined) return report;
      for (const installation of await dueInstallations(database, provider.name, new Date(), atOnce)) {
        heartbeat.cancelled.throwIfAborted();
        report.asked += 1;
        try {
          await syncInstallation(database, installation, provider.gitHost, provider.installation);
        } catch (error) {
          const { spaceId, installationId } = installation;
          logger.warn({ err: error, spaceId, installationId }, 'A git installation could not be looked at.');
          await putOff(database, installation, new Date(Date.now() + putOffMs));
          report.failed += 1;
          if (report.failed >= maxFailures) break;
        }
      }
      return report;
    },

    /** Connections that nobody has finished. */
    async purgeGitConnections(): Promise<number> {
      using heartbeat = keepAlive();
      return purgeGitConnections(database, new Date(), () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

export const hostingSweeps = [
  'sweepGitInstallations',
  'purgeGitConnections',
] as const satisfies readonly (keyof ReturnType<typeof createHostingSweeps>)[];
