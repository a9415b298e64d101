import { join } from 'node:path';
import { bundleWorkflowCode, NativeConnection } from '@temporalio/worker';
import { ThriftyWorker } from '../../temporal/worker.ts';

/**
 * A worker of its own for these workflows, since Jest's sandbox cannot load Temporal's native module: `node
 * spinningWorker.ts ADDRESS NAMESPACE TASK_QUEUE`. It prints a line when it polls, and runs until it is killed.
 */
const [address, namespace, taskQueue = ''] = process.argv.slice(2);
const quietly = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, log() {} };
/** Temporal’s own option, which its types do not name. */
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
