import { Script } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import type { WorkerThreadRequest } from '@temporalio/worker/lib/workflow/workflow-worker-thread/input.js';

/**
 * The thread that runs workflow code: Temporal's own, with one watchdog for each activation in place of one for each
 * call into the sandbox. A watchdog is a thread of V8's, and 138 µs; a short turn makes fifty such calls in three
 * activations. Code that does not come to an end is stopped like before, and only its own workflow task fails.
 */
export interface WorkflowThreadData {
  /** How long the code of one activation may run. */
  timeoutMs: number;
}

if (parentPort === null) throw new Error('This is the entry of a thread.');
const port = parentPort;
const { timeoutMs } = workerData as WorkflowThreadData;

// The listener that Temporal’s thread would put there.
let handle: ((request: WorkerThreadRequest) => Promise<void>) | undefined;
port.on = (_event: string, listener: (request: never) => void) => {
  handle = listener as typeof handle;
  return port;
};
await import('@temporalio/worker/lib/workflow/workflow-worker-thread.js');
const { globalHandlers } = await import('@temporalio/worker/lib/workflow/vm-shared.js');
Reflect.deleteProperty(port, 'on');

// A stack for each promise of a workflow is a fifth of the thread's work, and serves one query that nobody makes.
Object.defineProperty(globalHandlers, 'setPromiseHook', { value() {} });

// What has a watchdog around it needs none inside.
const { runInContext } = Script.prototype;
Script.prototype.runInContext = function runUnwatched(context, { timeout, ...options } = {}) {
  return runInContext.call(this, context, options);
};

/** What is watched has no arguments of its own. */
let activation: WorkerThreadRequest;
const activate = 'atriumActivate';
Object.defineProperty(globalThis, activate, { value: () => void handle?.(activation) });
const script = new Script(`${activate}()`);

port.on('message', (request: WorkerThreadRequest) => {
  const { requestId, input } = request;
  if (input.type !== 'activate-workflow') {
    void handle?.(request);
    return;
  }
  // All workflow code runs before the handler first waits.
  activation = request;
  try {
    script.runInThisContext({ timeout: timeoutMs });
  } catch (error) {
    const completion = { runId: input.runId, failed: { failure: failureOf(error as Error) } };
    port.postMessage({ requestId, result: { type: 'ok', output: { type: 'activation-completion', completion } } });
  }
});

/** With this the workflow task fails, to be tried again. */
function failureOf({ name, message, stack }: Error) {
  return { message, stackTrace: stack, source: 'TypeScriptSDK', applicationFailureInfo: { type: name } };
}
