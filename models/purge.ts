import { appsPurge } from './apps/purge.ts';
import { automationsPurge } from './automations/purge.ts';
import { billingPurge } from './billing/purge.ts';
import { browsersPurge } from './browsers/purge.ts';
import { chatPurge, type PurgeScope, purgeThreads } from './chat/purge.ts';
import { computersPurge } from './computers/purge.ts';
import type { AreaPurge } from './database/areaPurge.ts';
import { deleteInBatches } from './database/batches.ts';
import type { Database } from './database/database.ts';
import { databasesPurge } from './databases/purge.ts';
import { desktopsPurge } from './desktops/purge.ts';
import { drivePurge } from './drive/purge.ts';
import { egressPurge } from './egress/purge.ts';
import { gitPurge } from './git/purge.ts';
import { identityPurge } from './identity/purge.ts';
import { mailPurge } from './mail/purge.ts';
import { mcpPurge } from './mcp/purge.ts';
import { pushPurge } from './push/purge.ts';
import { secretsPurge } from './secrets/purge.ts';
import { webhooksPurge } from './webhooks/purge.ts';

/** The tables that belong to no area. */
const sharedPurge: AreaPurge = {
  ofSpace: ['audit_entries'],
  kept: {
    operations:
      'The deletion is one, and tells that it has ended. What is still running has to end too; the rest goes.',
    idempotency_keys: 'They are a caller’s, and go after their 30 days.',
    schema_migrations: 'It is the schema’s.',
    program_versions: 'They are the schema’s.',
    sweep_rounds: 'They are the installation’s.',
    purge_positions: 'They are the installation’s.',
    installation: 'It is the installation’s own.',
  },
  async finish(database, spaceId) {
    await deleteInBatches(
      database,
      "DELETE FROM operations WHERE space_id = ? AND kind <> 'deleteSpace' AND status <> 'running' LIMIT ?",
      [spaceId],
    );
  },
};

/**
 * In the order in which they finish. Identity comes last, since it destroys the keys that seal everything of a space.
 */
export const areaPurges: readonly AreaPurge[] = [
  chatPurge,
  appsPurge,
  automationsPurge,
  drivePurge,
  browsersPurge,
  desktopsPurge,
  computersPurge,
  databasesPurge,
  billingPurge,
  egressPurge,
  gitPurge,
  mailPurge,
  mcpPurge,
  pushPurge,
  secretsPurge,
  webhooksPurge,
  sharedPurge,
  identityPurge,
];

const ofTurn = areaPurges.flatMap((area) => area.ofTurn ?? []);
const ofThread = areaPurges.flatMap((area) => area.ofThread ?? []);
const ofSpace = areaPurges.flatMap((area) => area.ofSpace ?? []);

/**
 * Removes the rows of a deleted thread, or all of a deleted space but its drive, in batches that lock little. Safe to
 * run again.
 */
export async function purgeRows(database: Database, scope: PurgeScope, onBatch: () => void): Promise<void> {
  await purgeThreads(database, scope, { ofTurn, ofThread }, onBatch);
  if (!('spaceId' in scope)) return;
  for (const table of ofSpace)
    await deleteInBatches(database, `DELETE FROM ${table} WHERE space_id = ? LIMIT ?`, [scope.spaceId], onBatch);
  for (const area of areaPurges) await area.finish?.(database, scope.spaceId);
}
