import { Script } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import type { WorkerThreadRequest } from '@temporalio/worker/lib/workflow/workflow-worker-thread/input.js';

/**
 * The thread that runs workflow code: Temporal's own, with one watchdog for each request in place of one for each call
 * into the sandbox. A watchdog is a thread of V8's, and 138 µs; a short turn makes fifty such calls in a dozen requests.
 * Code that does not come to an end is stopped like before, and only its own workflow task fails.
 */
export interface WorkflowThreadData {
  /** How long the code of one request may run. */
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

/** The entry of what is watched, which has no arguments of its own. */
let request: WorkerThreadRequest;
const watched = 'atriumWatchedRequest';
Object.defineProperty(globalThis, watched, { value: () => void handle?.(request) });
const script = new Script(`${watched}()`);

port.on('message', (received: WorkerThreadRequest) => {
  if (received.input.type !== 'activate-workflow') {
    void handle?.(received);
    return;
  }
  // All workflow code runs before the handler first waits.
  request = received;
  try {
    script.runInThisContext({ timeout: timeoutMs });
  } catch (error) {
    port.postMessage(answerTo(received, error as Error));
  }
});

/** What the thread answers where it was stopped: the task fails with this, and is tried again. */
function answerTo({ requestId, input }: WorkerThreadRequest, { name, message, stack }: Error) {
  if (input.type !== 'activate-workflow') return { requestId, result: { type: 'error', name, message, stack } };
  const failure = { message, stackTrace: stack, source: 'TypeScriptSDK', applicationFailureInfo: { type: name } };
  const completion = { runId: input.runId, failed: { failure } };
  return { requestId, result: { type: 'ok', output: { type: 'activation-completion', completion } } };
}
