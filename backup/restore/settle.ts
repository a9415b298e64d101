import { passMissedTicks as passAppTicks } from '../../models/apps/passMissed.ts';
import { passMissedTicks as passAutomationTicks } from '../../models/automations/passMissed.ts';
import { stopAutoTopUps } from '../../models/billing/stopAutoTopUps.ts';
import { forgetAddresses } from '../../models/computers/hosts.ts';
import type { Database } from '../../models/database/database.ts';
import { databasesOnServer, makeFromOwnBackup, noteLost } from '../../models/databases/forBackup.ts';
import { suspectFound } from '../../models/drive/findings.ts';
import { endSignIns } from '../../models/identity/endSignIns.ts';
import { renewInstallation } from '../../models/installation/installation.ts';
import { endLinks } from '../../models/links/links.ts';
import type { NamedManifest } from '../vault/manifests.ts';

/**
 * What an old state must not bring back, sessions and links that were ended since, and what must not be done twice, runs of
 * schedules and automatic charges. What has to be made again on the server for databases is noted, and objects that were
 * damaged or missing are to be looked at. From here on it is an installation of its own, which is quiet, and reaches
 * none of the other's machines.
 */
export async function settle(
  database: Database,
  { id, tenants }: Pick<NamedManifest, 'id' | 'tenants'>,
): Promise<void> {
  await renewInstallation(database, id);
  await forgetAddresses(database);
  await endSignIns(database);
  await endLinks(database);
  await stopAutoTopUps(database);
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
