import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import type { DatabaseBackup } from '../../models/databases/backupRows.ts';
import type { ConnectionDetails } from '../../models/databases/connectionDetails.ts';
import { appsConnectedTo } from '../../models/databases/connections.ts';
import { getDatabase, type SpaceDatabase } from '../../models/databases/spaceDatabase.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { optionalTime, time } from '../frame/times.ts';

export function presentDatabase(
  database: SpaceDatabase,
  appIds: string[],
  { maxBytes, maxTables }: { maxBytes: number; maxTables: number },
): AnswerOf<'getDatabase'> {
  const { id, spaceId, name, state, isMade, createdBy, createdAt, deletedAt, purgeAt } = database;
  const { sizeBytes, tableCount, isFull, leftOut } = database;
  const ready = isMade ? 'ready' : 'creating';
  return {
    ...{ id, spaceId, name, status: state === 'living' ? ready : 'deleted', createdBy },
    ...{ createdAt: time(createdAt), deletedAt: optionalTime(deletedAt), purgeAt: optionalTime(purgeAt), appIds },
    ...{ sizeBytes, maxSizeBytes: maxBytes, tableCount, maxTables, isFull, leftOut },
  };
}

/** A database with the apps that are connected to it. Throws 404. */
export async function showDatabase(
  { config, database }: RouteDeps,
  where: { spaceId: string; id: string },
): Promise<AnswerOf<'getDatabase'>> {
  const found = await getDatabase(database, where);
  const apps = await appsConnectedTo(database, [found.id]);
  return presentDatabase(found, apps.get(found.id) ?? [], config.databases);
}

export function presentConnection(
  { host, port }: Pick<TenantServer, 'host' | 'port'>,
  { database, user, password, previousUntil }: ConnectionDetails,
): AnswerOf<'getDatabaseConnection'> {
  // Names and passwords are letters and digits, which need no escaping.
  const url = `mysql://${user}:${password}@${host}:${port}/${database}`;
  return { host, port, database, user, password, url, previousPasswordUntil: optionalTime(previousUntil) };
}

export function presentBackup(backup: DatabaseBackup): AnswerOf<'backUpDatabase'> {
  const { id, databaseId, state: status, sizeBytes, leftOut, errorCode, errorDetail, createdBy } = backup;
  const times = { createdAt: time(backup.createdAt), endedAt: optionalTime(backup.endedAt) };
  return { id, databaseId, status, sizeBytes, leftOut, errorCode, errorDetail, createdBy, ...times };
}
