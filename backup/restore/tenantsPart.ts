import { asWanted } from '../../activities/databases/wanted.ts';
import { RestoreRefused } from '../../integrations/databases/errors.ts';
import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import type { Fill } from '../../integrations/databases/types.ts';
import type { Database } from '../../models/database/database.ts';
import { type Alignment, finishAlignment } from '../../models/databases/alignment.ts';
import { isToBeFilled, makeFromOwnBackup } from '../../models/databases/forBackup.ts';
import type { SpaceDatabases } from '../../models/databases/index.ts';
import { inOrder } from '../make/inOrder.ts';
import type { Manifest } from '../vault/manifests.ts';
import type { Stored, Vault } from '../vault/vault.ts';
import { Source } from './source.ts';

const atOnce = 2;
/** Tries for a failure that may be temporary, such as a deadlock. */
const attempts = 3;

interface Deps {
  vault: Vault;
  database: Database;
  spaceDatabases: SpaceDatabases;
  tenantServer: TenantServer;
  signal: AbortSignal;
}

/**
 * Remakes the databases of spaces with their accounts and passwords. Each is loaded with its tenant's rights only. A
 * database that fails this way is made from its newest own backup at the start, and does not stop the others. Returns
 * those.
 */
export async function loadTenants({ tenants }: Manifest, deps: Deps): Promise<string[]> {
  const refused: string[] = [];
  async function* tasks() {
    for (const { databaseId, content } of tenants) {
      if (await isToBeFilled(deps.database, databaseId)) yield () => loadOne(deps, databaseId, content, refused);
    }
  }
  for await (const _done of inOrder(tasks(), atOnce)) deps.signal.throwIfAborted();
  return refused;
}

async function loadOne(deps: Deps, id: string, content: Stored, refused: string[]): Promise<void> {
  const { vault, database, tenantServer, signal } = deps;
  for (let attempt = 1; ; attempt++) {
    const source = new Source(vault.read(content));
    try {
      await makeOne(deps, id, source);
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (source.failure !== undefined) throw source.failure;
      // Fails here if the server is down. That concerns all databases, not only this one.
      await tenantServer.settings();
      if (attempt < attempts && !(error instanceof RestoreRefused)) continue;
      refused.push(id);
      await makeFromOwnBackup(database, id);
      return;
    }
  }
}

async function makeOne(deps: Deps, id: string, source: Source): Promise<void> {
  const { database, spaceDatabases, tenantServer, signal } = deps;
  let aligned: Alignment | undefined;
  await tenantServer.align(id, async () => {
    aligned = await spaceDatabases.alignment(id);
    // Lifted during the load, since a full database accepts no writes.
    const open = { isFull: false, isFullOfDefinitions: false };
    return aligned && { ...asWanted(aligned), ...open, fill: fillOf(aligned, source, signal) };
  });
  if (aligned === undefined) return;
  const { isFull, isFullOfDefinitions } = aligned;
  if (isFull || isFullOfDefinitions) {
    const wanted = asWanted(aligned);
    await tenantServer.align(id, async () => wanted);
  }
  await finishAlignment(database, aligned);
}

/** The database keeps its name on the server, which tenants have in their URLs. No other client uses it yet. */
function fillOf(aligned: Alignment, source: Source, signal: AbortSignal): Fill | undefined {
  const own = aligned.accounts.find(({ isOwn }) => isOwn);
  return (
    own && {
      user: own.serverUser,
      signal,
      begin: async () => aligned.serverName,
      read: (take) => take(source.bytes()),
    }
  );
}
