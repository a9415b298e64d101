import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { createTestEnvironment } from '../support/environment.ts';
import { start } from '../support/processes.ts';
import { waitFor } from '../support/waitFor.ts';

// During a rolling upgrade, an older worker gets work of the new version.

test('A workflow or an activity that a worker does not know waits for a worker that knows it', async () => {
  await using running = new AsyncDisposableStack();
  const { config, close } = await createTestEnvironment();
  running.defer(close);
  const { address, namespace } = config.temporal;
  const connection = await Connection.connect({ address });
  running.defer(() => connection.close());
  const taskQueue = `${config.installation}-older`;
  const during = async (program: string, names: string[], work: () => Promise<unknown>) => {
    const path = join(import.meta.dirname, program);
    const worker = start(process.execPath, [path, address, namespace, taskQueue, ...names]);
    try {
      await worker.printed(/polling/);
      await work();
    } finally {
      worker.child.kill('SIGKILL');
    }
  };

  const { workflow } = new Client({ connection, namespace });
  const sweep = await workflow.start('sweep', {
    taskQueue,
    workflowId: `${taskQueue}-sweep`,
    args: [['known', 'sweepOfTomorrow'], '10 minutes'],
  });
  running.defer(() =>
    sweep.terminate().then(
      () => undefined,
      () => undefined,
    ),
  );
  const happened = (attribute: string) =>
    waitFor(attribute, async () =>
      ((await sweep.fetchHistory()).events ?? []).some((event) => attribute in event && event[attribute as never]),
    );

  await during('spinningWorker.ts', [], () => happened('workflowTaskFailedEventAttributes'));
  await during('olderWorker.ts', [], async () => {
    await happened('activityTaskFailedEventAttributes');
    await happened('timerStartedEventAttributes');
  });
  await during('olderWorker.ts', ['sweepOfTomorrow'], () => sweep.result());
  expect((await sweep.describe()).status.name).toBe('COMPLETED');
});
