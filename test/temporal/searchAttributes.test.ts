import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { registerSearchAttributes, searchAttributes } from '../../temporal/searchAttributes.ts';
import { stackEnvironment } from '../support/environment.ts';
import { waitFor } from '../support/waitFor.ts';

const namespace = `attributes-${randomBytes(4).toString('hex')}`;
let connection: Connection;

beforeAll(async () => {
  connection = await Connection.connect({ address: stackEnvironment().ATRIUM_TEMPORAL_ADDRESS });
  const workflowExecutionRetentionPeriod = proto.google.protobuf.Duration.fromObject({ seconds: 86_400 });
  await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
});
afterAll(() => connection.close());

test('Search attributes are registered once, and a workflow can start with them', async () => {
  expect(await registerSearchAttributes(connection, namespace)).toEqual([...searchAttributes]);
  expect(await registerSearchAttributes(connection, namespace)).toEqual([]);
  const { workflow } = new Client({ connection, namespace });
  const start = () =>
    workflow.start('nobody runs it', {
      workflowId: 'one',
      taskQueue: 'none',
      searchAttributes: Object.fromEntries(searchAttributes.map((name) => [name, ['value']])),
    });
  // The server reads a namespace again every two seconds.
  const handle = await waitFor('the server to know the search attributes', () => start().catch(() => undefined));
  await handle.terminate();
});
