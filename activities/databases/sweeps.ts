import { beginDueBackup, type DueBackup, databasesToBackUp, dueBackups } from '../../models/databases/backups.ts';
import { namesOf } from '../../models/databases/names.ts';
import {
  dueDatabases,
  forgetPurged,
  type KnownDatabase,
  knownDatabases,
  markDue,
} from '../../models/databases/sweeps.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, purgeOlder, type SweepReport, type Sweeps, sweepActors, sweepEach } from '../sweepEach.ts';
import type { DatabaseDeps } from './deps.ts';

export interface DatabaseComparison {
  /** Databases that differed from their rows, and are aligned again. */
  differed: number;
  /** Names of this installation on the server that no row has. They are left alone. */
  unknown: number;
}

/** When to check again whether backups are wanted, if they are off. */
const idleMs = 86_400_000;
const keptAfterPurgeMs = 7 * 86_400_000;

/** The sweeps of databases. Rows are the truth, and the server follows. */
export function createDatabaseSweeps(deps: DatabaseDeps) {
  const { config, database, logger, tenantServer, workflows } = deps;
  return {
    /** Databases that wait for the server, or whose next change by time is due. */
    sweepDatabases: sweepActors(deps, { rows: dueDatabases, tell: workflows.startDatabase }),

    /** Databases whose next backup is due. */
    beginDatabaseBackups: (): Promise<SweepReport> =>
      sweepEach<DueBackup>({
        logger,
        before: new Date(),
        page: (page) => databasesToBackUp(database, page),
        async look({ id }) {
          const { backupMs } = config.databases;
          const nextAt = new Date(Date.now() + (backupMs || idleMs));
          const begun = await beginDueBackup(database, id, { nextAt, isWanted: backupMs > 0 });
          return begun === undefined ? 'left' : asSwept(await workflows.startDatabaseBackup(begun), 'started');
        },
      }),

    /** Backups that are still to be made. */
    sweepDatabaseBackups: sweepActors(deps, { rows: dueBackups, tell: workflows.startDatabaseBackup }),

    /**
     * Compares the server with the rows: makes missing databases and accounts again, removes purged ones, and corrects
     * accounts that are open or locked against their row. Unknown ones are logged and left, because they may hold data.
     */
    async compareDatabases(): Promise<DatabaseComparison> {
      using heartbeat = keepAlive();
      if (tenantServer === undefined) return { differed: 0, unknown: 0 };
      const found = await tenantServer.find(namesOf(config.installation)).catch((error: unknown) => {
        logger.warn({ err: error }, 'The server for databases could not be looked at; the next sweep tries again.');
      });
      if (found === undefined) return { differed: 0, unknown: 0 };
      const onServer = new Set([...found.databases, ...found.users]);
      const locked = new Set(found.locked);
      const known = new Set<string>();
      let differed = 0;
      for await (const page of knownDatabases(database)) {
        heartbeat.cancelled.throwIfAborted();
        for (const one of page) {
          for (const name of namesIn(one)) known.add(name);
          if (one.isUnderWay || !differs(one, onServer, locked)) continue;
          differed++;
          await markDue(database, one.id);
        }
      }
      // Atrium writes the row first, and the rows were read after the server.
      const unknown = [...onServer].filter((name) => !known.has(name));
      if (unknown.length > 0) {
        logger.warn({ unknown }, 'The database server has databases or accounts that Atrium does not know.');
      }
      return { differed, unknown: unknown.length };
    },

    forgetPurgedDatabases: purgeOlder(keptAfterPurgeMs, (before, onBatch) => forgetPurged(database, before, onBatch)),
  };
}

function namesIn({ serverName, users }: KnownDatabase): string[] {
  return [serverName, ...users.map(({ name }) => name)];
}

function differs(known: KnownDatabase, onServer: ReadonlySet<string>, locked: ReadonlySet<string>): boolean {
  if (namesIn(known).some((name) => onServer.has(name) !== known.isThere)) return true;
  return known.isThere && known.users.some(({ name, isLocked }) => locked.has(name) !== isLocked);
}

export const databaseSweeps = {
  rescue: ['sweepDatabases', 'beginDatabaseBackups', 'sweepDatabaseBackups'],
  upkeep: ['compareDatabases', 'forgetPurgedDatabases'],
} as const satisfies Sweeps<keyof ReturnType<typeof createDatabaseSweeps>>;
