import { Worker as Thread } from 'node:worker_threads';
import { Worker } from '@temporalio/worker';
import { ThreadedVMWorkflowCreator, WorkerThreadClient } from '@temporalio/worker/lib/workflow/threaded-vm.js';
import type { WorkflowThreadData } from './workflowThread.ts';

const entry = new URL('./workflowThread.ts', import.meta.url);

/** Temporal’s worker, with our thread for workflow code. */
export class ThriftyWorker extends Worker {
  protected static override async createWorkflowCreator(
    ...[workflowBundle, options, logger]: Parameters<typeof Worker.createWorkflowCreator>
  ) {
    const workerData: WorkflowThreadData = { timeoutMs: options.isolateExecutionTimeoutMs };
    const thread = new WorkerThreadClient(new Thread(entry, { workerData }), logger);
    await thread.send({
      type: 'init',
      workflowBundle,
      isolateExecutionTimeoutMs: options.isolateExecutionTimeoutMs,
      reuseV8Context: true,
      registeredActivityNames: new Set(options.activities.keys()),
      hasPatchActivationCallback: false,
    });
    return new ThreadedVMWorkflowCreator([thread]);
  }
}
