import { counted } from '../../base/text.ts';
import type { Config } from '../../config/index.ts';
import { createTenantServer, type TenantSettings } from '../../integrations/databases/tenantServer.ts';
import { namesOf } from '../../models/databases/names.ts';
import { off, ok, wrong } from './check.ts';

/**
 * Whether the server for the databases of spaces answers, is separate from the product's own, and reads no client
 * files.
 */
export async function checkDatabases({ databases, database, installation }: Config) {
  const { url, adminPort, ...limits } = databases;
  if (url === undefined) return off('not set (ATRIUM_TENANT_DATABASE_URL): spaces have no databases');
  const placeOf = (address: string) => {
    const { hostname, port } = new URL(address);
    return `${hostname}:${port || 3306}`;
  };
  const place = placeOf(url);
  if (place === placeOf(database.url)) {
    return wrong(
      `${place} is the product's own server: locks, memory and connections are a server's, so give it another`,
    );
  }
  const server = createTenantServer({ url, adminPort }, limits);
  const settings = await server.settings();
  const { version } = settings;
  const found = await server.find(namesOf(installation));
  const fault = faultOf(settings);
  if (fault !== undefined) return wrong(`${version} at ${place}; set its ${fault}`);
  const admin =
    adminPort === undefined ? '; without ATRIUM_TENANT_DATABASE_ADMIN_PORT tenants can lock Atrium out' : '';
  return ok(`${version} at ${place}, ${counted(found.databases.length, 'database')}${admin}`);
}

/** The first wrong setting, with its right value. */
export function faultOf(settings: TenantSettings): string | undefined {
  const engines = settings.version.startsWith('MySQL')
    ? 'disabled_storage_engines to MEMORY,MyISAM,MERGE,CSV,ARCHIVE,BLACKHOLE,FEDERATED'
    : 'enforce_storage_engine to InnoDB';
  const faults: [boolean, string][] = [
    [settings.localInfile, 'local_infile to OFF'],
    [settings.eventScheduler, 'event_scheduler to DISABLED'],
    [!settings.functions, 'log_bin_trust_function_creators to ON, or spaces make no triggers'],
    [settings.memoryTables, `${engines}, or their tables take its memory`],
    [settings.resolvesNames, 'skip_name_resolve to ON, or one space shuts out all'],
    [settings.isOpenToAll, "grants to named accounts alone: DELETE FROM mysql.db WHERE User = '', and drop ''@…"],
    [
      !settings.boundsTemporary,
      'tmp_disk_table_size to 512M, with maximum-tmp_disk_table_size, or one statement fills its disk',
    ],
    [!settings.durations, 'performance_schema to ON, or nothing ends long statements'],
  ];
  return faults.find(([isWrong]) => isWrong)?.[1];
}
