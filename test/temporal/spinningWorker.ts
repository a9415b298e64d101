import { join } from 'node:path';
import { bundleWorkflowCode, NativeConnection } from '@temporalio/worker';
import { ThriftyWorker } from '../../temporal/worker.ts';

/**
 * A separate worker for these workflows, because Jest's sandbox cannot load Temporal's native module. Usage: `node
 * spinningWorker.ts ADDRESS NAMESPACE TASK_QUEUE`. It prints a line when it polls, and runs until it is killed.
 */
const [address, namespace, taskQueue = ''] = process.argv.slice(2);
const quietly = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };
/** An option of Temporal that its types do not declare. */
const quickly = { isolateExecutionTimeout: 300 };
const worker = await ThriftyWorker.create({
  connection: await NativeConnection.connect({ address }),
  namespace,
  taskQueue,
  workflowBundle: await bundleWorkflowCode({
    workflowsPath: join(import.meta.dirname, 'spinningWorkflows.ts'),
    logger: quietly,
  }),
  ...quickly,
});
process.stdout.write('polling\n');
await worker.run();
