import type { Config } from '../../config/index.ts';
import type { LaunchConfig } from '../../config/launch.ts';

/** The places that a restore writes to, in words. */
export type Targets = Record<string, string>;

/** A part that runs only for the restore belongs to its data directory. Its port does not matter. */
const ownPart = 'of the data directory';

/** The places of a restore. Two restores with equal targets write to the same places. */
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

/** The first target that changed, in words. Undefined if none did. */
export function differenceOf(before: Targets, now: Targets): string | undefined {
  const name = Object.keys(now).find((key) => before[key] !== now[key]);
  return name && `the ${name} was ${before[name] ?? 'another'}, and is ${now[name]}`;
}
