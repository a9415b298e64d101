import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { createTestEnvironment } from '../support/environment.ts';
import { start } from '../support/processes.ts';
import { waitFor } from '../support/waitFor.ts';

test('A workflow that loops forever is stopped, and other workflows go on', async () => {
  await using running = new AsyncDisposableStack();
  const { config, close } = await createTestEnvironment();
  running.defer(close);
  const { address, namespace } = config.temporal;
  const connection = await Connection.connect({ address });
  running.defer(() => connection.close());
  const { workflow } = new Client({ connection, namespace });
  const taskQueue = `${config.installation}-spinning`;
  const program = join(import.meta.dirname, 'spinningWorker.ts');
  const worker = start(process.execPath, [program, address, namespace, taskQueue]);
  running.defer(() => void worker.child.kill('SIGKILL'));
  await worker.printed(/polling/);

  const spinning = await workflow.start('spin', { taskQueue, workflowId: `${taskQueue}-spin` });
  running.defer(() => void spinning.terminate());
  const failures = async () => {
    const { events } = await spinning.fetchHistory();
    return (events ?? []).flatMap(({ workflowTaskFailedEventAttributes: failed }) => failed?.failure?.message ?? []);
  };
  const answer = (id: string) => workflow.execute('answer', { taskQueue, workflowId: `${taskQueue}-${id}` });
  expect(await answer('beside')).toBe(42);
  await waitFor('the task of the spinning workflow to fail', async () => (await failures()).length > 0);
  expect((await failures())[0]).toContain('timed out after 300ms');
  expect(await answer('after')).toBe(42);
});
