import { Client, Connection } from '@temporalio/client';
import { assertOwnSchedules, ensureSchedules, InstallationTakenError } from '../../temporal/schedules/installation.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let environment: TestEnvironment;
let connection: Connection;
beforeAll(async () => {
  environment = await createTestEnvironment();
  connection = await Connection.connect({ address: environment.config.temporal.address });
});
afterAll(async () => {
  await connection.close();
  await environment.close();
});

test('Schedules belong to the installation that made them, and a copy of it cannot take them over', async () => {
  const { config } = environment;
  const client = new Client({ connection, namespace: config.temporal.namespace });
  await assertOwnSchedules(client, config, 'ins_1');
  await ensureSchedules(client, config, 'ins_1');
  await ensureSchedules(client, config, 'ins_1');
  await assertOwnSchedules(client, config, 'ins_1');
  await expect(assertOwnSchedules(client, config, 'ins_2')).rejects.toThrow(InstallationTakenError);
  await expect(ensureSchedules(client, config, 'ins_2')).rejects.toThrow(/belongs to another installation \(ins_1;/);
  await assertOwnSchedules(client, config, 'ins_1');
});
