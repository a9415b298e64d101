import { Worker as Thread } from 'node:worker_threads';
import { Worker } from '@temporalio/worker';
import type { Workflow, WorkflowCreateOptions, WorkflowCreator } from '@temporalio/worker/lib/workflow/interface.js';
import { WorkerThreadClient } from '@temporalio/worker/lib/workflow/threaded-vm.js';
import type { SinkCall } from '@temporalio/workflow';
import type { Activated, Disposal, ThreadInput, WorkflowActivation, WorkflowCompletion } from './workflowThread.ts';

const entry = new URL('./workflowThread.ts', import.meta.url);

let ahead: Thread | undefined;

/**
 * Begins to load the thread for workflow code, the slowest part of a worker's start. The next worker of this process
 * that runs workflows takes it. Until then the thread does not keep the process from ending.
 */
export function loadWorkflowThread(): void {
  if (ahead !== undefined) return;
  const thread = new Thread(entry);
  const forget = () => {
    if (ahead === thread) ahead = undefined;
  };
  // The worker then makes another thread, and fails with its reason.
  thread.once('error', forget).once('exit', forget).unref();
  ahead = thread;
}

function takeWorkflowThread(): Thread {
  const thread = ahead ?? new Thread(entry);
  ahead = undefined;
  thread.ref();
  return thread;
}

/** Temporal’s worker, with our thread for workflow code. */
export class ThriftyWorker extends Worker {
  protected static override async createWorkflowCreator(
    ...[workflowBundle, options, logger]: Parameters<typeof Worker.createWorkflowCreator>
  ) {
    const thread = new WorkflowThread(takeWorkflowThread(), logger);
    await thread.ask({
      type: 'init',
      workflowBundle,
      isolateExecutionTimeoutMs: options.isolateExecutionTimeoutMs,
      reuseV8Context: true,
      registeredActivityNames: new Set(options.activities.keys()),
      hasPatchActivationCallback: false,
    });
    return thread;
  }
}

/** Temporal's client of a thread, with the requests of our own thread. */
class WorkflowThread extends WorkerThreadClient implements WorkflowCreator {
  ask(input: ThreadInput): Promise<unknown> {
    return this.send(input as never);
  }

  forget(runId: string): void {
    this.workerThread.postMessage({ disposed: runId } satisfies Disposal);
  }

  async createWorkflow(options: WorkflowCreateOptions): Promise<Workflow> {
    // A message cannot carry functions. The sandbox has its own.
    const { now: _now, random: _random, ...unsafe } = options.info.unsafe;
    const info = { ...options.info, unsafe: unsafe as typeof options.info.unsafe };
    return new WorkflowInThread(this, { ...options, info });
  }
}

class WorkflowInThread implements Workflow {
  readonly #thread: WorkflowThread;
  readonly #runId: string;
  /** How to make the workflow. Sent with the first activation, then cleared. */
  #options: WorkflowCreateOptions | undefined;
  #sinkCalls: SinkCall[] = [];

  constructor(thread: WorkflowThread, options: WorkflowCreateOptions) {
    this.#thread = thread;
    this.#runId = options.info.runId;
    this.#options = options;
  }

  async activate(activation: WorkflowActivation): Promise<WorkflowCompletion> {
    const create = this.#options;
    this.#options = undefined;
    const { completion, sinkCalls } = (await this.#thread.ask({
      type: 'activate',
      runId: this.#runId,
      activation,
      ...(create !== undefined && { create }),
    })) as Activated;
    this.#sinkCalls = sinkCalls;
    return completion;
  }

  async getAndResetSinkCalls(): Promise<SinkCall[]> {
    return this.#sinkCalls.splice(0);
  }

  async dispose(): Promise<void> {
    this.#thread.forget(this.#runId);
  }
}
