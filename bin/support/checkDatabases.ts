import type { Config } from '../../config/index.ts';
import { createTenantServer } from '../../integrations/tenantDatabases/tenantServer.ts';
import { namesOf } from '../../models/databases/names.ts';
import { off, ok, wrong } from './check.ts';

/** Whether the server for the databases of spaces answers, is one of its own, and reads no client's files. */
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
  const { version, localInfile, eventScheduler, functions, resolvesNames, durations } = await server.settings();
  const found = await server.find(namesOf(installation));
  if (localInfile) return wrong(`${version} at ${place}; set its local_infile to OFF`);
  if (eventScheduler) return wrong(`${version} at ${place}; set its event_scheduler to DISABLED`);
  if (!functions)
    return wrong(`${version} at ${place}; set its log_bin_trust_function_creators to ON, or spaces make no triggers`);
  if (resolvesNames) return wrong(`${version} at ${place}; set its skip_name_resolve to ON, or one shuts out all`);
  if (!durations)
    return wrong(`${version} at ${place}; set its performance_schema to ON, or nothing ends long statements`);
  const admin =
    adminPort === undefined ? '; without ATRIUM_TENANT_DATABASE_ADMIN_PORT tenants can lock Atrium out' : '';
  return ok(`${version} at ${place}, ${found.databases.length} databases${admin}`);
}
