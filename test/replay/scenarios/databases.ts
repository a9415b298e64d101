import { actorWorkflowId, databaseBackupWorkflowId, operationWorkflowId } from '../../../temporal/workflowIds.ts';
import { databasesOf, enter } from '../../builders/databases.ts';
import { tenantServer } from '../../support/runServer.ts';
import type { Scenario } from './scenario.ts';

export const databaseScenarios: Scenario[] = [
  {
    name: 'spaceDatabase/made',
    environment: tenantServer,
    run: async (_product, user) => actorWorkflowId('spaceDatabase', (await databasesOf(user).make('shop')).id),
  },
  {
    // No server listens there. The caller gets an error, and the sweeper, which would try again, does not run.
    name: 'spaceDatabase/serverUnavailable',
    environment: {
      ATRIUM_TENANT_DATABASE_URL: 'mysql://somebody:secret@127.0.0.1:9/',
      ATRIUM_SWEEP_INTERVAL_SECONDS: '3600',
    },
    async run(_product, user) {
      const own = databasesOf(user);
      await user.fetch(own.root, { method: 'POST', body: { name: 'shop' } });
      return actorWorkflowId('spaceDatabase', (await own.list())[0]?.id ?? '');
    },
  },
  {
    name: 'databaseBackup/made',
    environment: tenantServer,
    async run(_product, user) {
      const own = databasesOf(user);
      const { id } = await own.make('shop');
      return databaseBackupWorkflowId((await own.backUp(id)).id);
    },
  },
  {
    name: 'databaseBackup/noRoom',
    environment: tenantServer,
    async run({ environment }, user) {
      const own = databasesOf(user);
      const { id } = await own.make('shop');
      const { database, config } = environment;
      await database.pool.query(
        'INSERT INTO drives (space_id, used_bytes) VALUES (?, ?) ON DUPLICATE KEY UPDATE used_bytes = VALUES(used_bytes)',
        [user.spaceId, config.drive.quotaBytes],
      );
      return databaseBackupWorkflowId((await own.backUp(id)).id);
    },
  },
  {
    name: 'spaceDatabase/restored',
    environment: tenantServer,
    async run(_product, user) {
      const own = databasesOf(user);
      const { id } = await own.make('shop');
      return actorWorkflowId(
        'spaceDatabase',
        (await own.restoreFrom(id, (await own.backUp(id)).id, 'shop as it was')).id,
      );
    },
  },
  {
    name: 'spaceDatabase/compacted',
    environment: tenantServer,
    async run(_product, user) {
      const own = databasesOf(user);
      const { id } = await own.make('shop');
      await own.compact(id);
      return actorWorkflowId('spaceDatabase', id);
    },
  },
  {
    name: 'databaseBackup/rowTooLarge',
    environment: tenantServer,
    async run(_product, user) {
      const own = databasesOf(user);
      const { id } = await own.make('shop');
      await using connection = await enter(await own.connection(id));
      await connection.query('CREATE TABLE files (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB, c LONGBLOB)');
      await connection.query("INSERT INTO files VALUES (1, '', '', '')");
      for (const column of ['a', 'b', 'c']) {
        await connection.query(`UPDATE files SET ${column} = REPEAT('x', 12000000)`);
      }
      return databaseBackupWorkflowId((await own.backUp(id)).id);
    },
  },
  {
    name: 'purgeDeleted/spaceWithDatabase',
    environment: tenantServer,
    async run(_product, user) {
      await databasesOf(user).make('shop');
      const { headers } = await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' });
      return operationWorkflowId('deleteSpace', headers.get('location')?.split('/').at(-1) ?? '');
    },
  },
];
