import { databaseHost, databasePort } from '../../integrations/egress/databaseNames.ts';
import type { AppDatabase } from '../../models/databases/connections.ts';

/** What the runs of an app are told of the database that it is connected to. */
export function databaseVariables(database: AppDatabase | undefined): Record<string, string> {
  if (database === undefined) return {};
  const { serverName, user, password } = database;
  const host = databaseHost(serverName);
  return {
    DATABASE_URL: `mysql://${user}:${password}@${host}:${databasePort}/${serverName}`,
    DATABASE_HOST: host,
    DATABASE_PORT: String(databasePort),
    DATABASE_NAME: serverName,
    DATABASE_USER: user,
    DATABASE_PASSWORD: password,
  };
}
