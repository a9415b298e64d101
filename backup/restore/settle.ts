import type { Config } from '../../config/index.ts';
import { passMissedTicks as passAppTicks } from '../../models/apps/schedules.ts';
import { passMissedTicks as passAutomationTicks } from '../../models/automations/automation.ts';
import { stopAutoTopUps } from '../../models/billing/autoTopUp.ts';
import { noteRestored } from '../../models/computers/beats.ts';
import { forgetAddresses } from '../../models/computers/hosts.ts';
import type { Database } from '../../models/database/database.ts';
import { databasesOnServer, makeFromOwnBackup, noteLost } from '../../models/databases/forBackup.ts';
import { suspectFound } from '../../models/drive/findings.ts';
import { endSignIns } from '../../models/identity/sessions.ts';
import { renewInstallation } from '../../models/installation/installation.ts';
import { endLinks } from '../../models/links/links.ts';
import type { NamedManifest } from '../vault/manifests.ts';

/**
 * Adjusts restored rows. Ends sessions and links, since some may have been ended after the backup. Skips missed runs of
 * schedules and stops automatic charges, since the original may have done them. Stops computers. Marks databases to remake on their
 * server, and damaged or missing objects to check again. From here on this is an installation of its own. It is quiet
 * and knows no address of the original's machines.
 */
export async function settle(
  { database, config }: { database: Database; config: Config },
  { id, tenants }: Pick<NamedManifest, 'id' | 'tenants'>,
): Promise<void> {
  await renewInstallation(database, id);
  await forgetAddresses(database);
  await endSignIns(database);
  await endLinks(database);
  await stopAutoTopUps(database);
  await noteRestored({ database, config });
  await suspectFound(database);
  const now = new Date();
  await passAutomationTicks(database, now);
  await passAppTicks(database, now);
  const backedUp = new Set(tenants.map(({ databaseId }) => databaseId));
  for (const { id, isLiving } of await databasesOnServer(database)) {
    if (isLiving && backedUp.has(id)) await noteLost(database, id);
    else await makeFromOwnBackup(database, id);
  }
}
