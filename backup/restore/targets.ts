import type { Config } from '../../config/index.ts';
import type { LaunchConfig } from '../../config/launch.ts';

/** Where a restore writes, in words. */
export type Targets = Record<string, string>;

/** A part that runs for the restore alone is of its data directory, on whatever port. */
const ownPart = 'of the data directory';

/** Two restores write to the same places where these are the same. */
export function targetsOf(
  { migration, database, storage, databases, installation, computers }: Config,
  need: LaunchConfig['need'],
): Targets {
  const { url } = databases;
  return {
    database: need.database ? ownPart : serverOf(migration.databaseUrl ?? database.url, true),
    bucket: need.storage ? ownPart : `${storage.bucket} at ${storage.endpoint ?? storage.region}`,
    'server for databases of spaces': need.tenantDatabase ? ownPart : url === undefined ? 'none' : serverOf(url),
    installation,
    'folder of computers': computers.dir,
  };
}

function serverOf(address: string, withName = false): string {
  const { hostname, port, pathname } = new URL(address);
  return `${withName ? `${pathname.slice(1)} at ` : ''}${hostname}:${port || '3306'}`;
}

/** What is another than it was, in words; undefined where nothing is. */
export function differenceOf(before: Targets, now: Targets): string | undefined {
  const name = Object.keys(now).find((key) => before[key] !== now[key]);
  return name && `the ${name} was ${before[name] ?? 'another'}, and is ${now[name]}`;
}
