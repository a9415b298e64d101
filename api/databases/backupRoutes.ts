import { getBackup, listBackups } from '../../models/databases/backupRows.ts';
import { askForBackup, removeBackup } from '../../models/databases/backups.ts';
import { getDatabase } from '../../models/databases/spaceDatabase.ts';
import { answer } from '../frame/answer.ts';
import { actorOf } from '../frame/auth/actor.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { makeOnce } from '../frame/idempotency.ts';
import { GoesOn, outcomeOf, waitForRow } from '../frame/operationAnswer.ts';
import { bodyOf, pageOf, pathOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { presentBackup, showDatabase } from './presentDatabase.ts';
import { requireServer } from './requireServer.ts';

const base = '/api/spaces/:spaceId/databases/:databaseId/backups';

/** The backups of spaces' databases. */
export function backupRoutes(deps: RouteDeps) {
  const { database, launcher, spaceDatabases, tenantServer } = deps;
  const router = createRouter();

  router.get(base, async (req, res) => {
    const { spaceId, databaseId } = pathOf<'listDatabaseBackups'>(req);
    await getDatabase(database, { spaceId, id: databaseId });
    const { data, nextCursor } = await listBackups(database, databaseId, pageOf(req));
    answer<'listDatabaseBackups'>(res, 200, { data: data.map(presentBackup), nextCursor });
  });

  router.post(base, async (req, res) => {
    requireServer(tenantServer);
    const { spaceId, databaseId } = pathOf<'backUpDatabase'>(req);
    await makeOnce<'backUpDatabase'>(deps, req, res, 'databaseBackup', async (id) => {
      await askForBackup(database, { spaceId, databaseId, id, actor: actorOf(req) });
      void launcher.startDatabaseBackup({ id, spaceId });
      const look = () => getBackup(database, { databaseId, id });
      return presentBackup(await waitForRow(req, look, ({ state }) => state !== 'making'));
    });
  });

  router.delete(`${base}/:backupId`, async (req, res) => {
    const { spaceId, databaseId, backupId: id } = pathOf<'deleteDatabaseBackup'>(req);
    await removeBackup(database, { spaceId, databaseId, id, actor: actorOf(req) });
    res.status(204).end();
  });

  router.post(`${base}/:backupId/restore`, async (req, res) => {
    requireServer(tenantServer);
    const { spaceId, databaseId, backupId } = pathOf<'restoreDatabaseBackup'>(req);
    const { name } = bodyOf<'restoreDatabaseBackup'>(req);
    await makeOnce<'restoreDatabaseBackup'>(deps, req, res, 'spaceDatabase', async (id) => {
      const from = { id: backupId, databaseId };
      const operation = await spaceDatabases.wishes.make({ id, spaceId, name, from }, actorOf(req));
      const outcome = operation && (await outcomeOf(deps, req, operation));
      return outcome instanceof GoesOn ? outcome : showDatabase(deps, { spaceId, id });
    });
  });

  return router;
}
