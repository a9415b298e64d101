import { tmpdir } from 'node:os';
import { NativeConnection } from '@temporalio/worker';
import { bundleWorkflows } from '../../temporal/bundle.ts';
import { ThriftyWorker } from '../../temporal/worker.ts';

/**
 * A separate worker with the product's workflows and few activities, like one of an older version. Usage: `node
 * olderWorker.ts ADDRESS NAMESPACE TASK_QUEUE ACTIVITY...`. It prints a line when it polls, and runs until it is
 * killed.
 */
const [address, namespace, taskQueue = '', ...names] = process.argv.slice(2);
const worker = await ThriftyWorker.create({
  connection: await NativeConnection.connect({ address }),
  namespace,
  taskQueue,
  workflowBundle: await bundleWorkflows(tmpdir()),
  activities: Object.fromEntries(['known', ...names].map((name) => [name, async () => undefined])),
  stickyQueueScheduleToStartTimeout: 1_000,
});
process.stdout.write('polling\n');
await worker.run();
