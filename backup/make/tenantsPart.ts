import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import type { Database } from '../../models/database/database.ts';
import { type DatabaseOnServer, databasesOnServer } from '../../models/databases/forBackup.ts';
import type { SpaceDatabases } from '../../models/databases/index.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Stored, Vault } from '../vault/vault.ts';
import { inOrder } from './inOrder.ts';

const atOnce = 2;
/** A space that changes its tables during the dump makes it fail. */
const attempts = 3;

interface Deps {
  vault: Vault;
  database: Database;
  spaceDatabases: SpaceDatabases;
  tenantServer: TenantServer;
  signal: AbortSignal;
}

/**
 * Stores the databases of spaces, each as of one moment. A database that cannot be read becomes a gap and does not stop
 * the others, since its own backups are in the bucket.
 */
export async function storeTenants(deps: Deps): Promise<Pick<Manifest, 'tenants' | 'gaps'>> {
  const tenants: Manifest['tenants'] = [];
  const gaps: string[] = [];
  // Fails here if the server is down, instead of once for each database.
  await deps.tenantServer.settings();
  async function* tasks() {
    const all = await databasesOnServer(deps.database);
    for (const one of all.filter(({ isLiving }) => isLiving)) yield () => storeOne(deps, one);
  }
  for await (const { id, content, failure } of inOrder(tasks(), atOnce)) {
    if (content !== undefined) tenants.push({ databaseId: id, content });
    else gaps.push(`the database ${id} as it is now (${failure}); its newest own backup is in the bucket`);
  }
  return { tenants, gaps };
}

async function storeOne(
  { vault, spaceDatabases, tenantServer, signal }: Deps,
  { id, serverName }: DatabaseOnServer,
): Promise<{ id: string; content?: Stored; failure?: string }> {
  for (let attempt = 1; ; attempt++) {
    signal.throwIfAborted();
    const keeper = await spaceDatabases.readerOf(id, 'keeper');
    if (keeper === undefined) return { id, failure: 'the server has no account that reads it yet' };
    try {
      const account = { ...keeper, database: serverName };
      return { id, content: await tenantServer.dump(account, signal, (bytes) => vault.store(bytes)) };
    } catch (error) {
      signal.throwIfAborted();
      if (attempt === attempts) return { id, failure: (error as Error).message };
    }
  }
}
