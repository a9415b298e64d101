import { type Context, Script } from 'node:vm';
import { parentPort } from 'node:worker_threads';
import proto from '@temporalio/proto'; // CommonJS: its names are not seen as named exports
import type { Workflow, WorkflowCreateOptions } from '@temporalio/worker/lib/workflow/interface.js';
import { ReusableVMWorkflow, ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm.js';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';
import type { Init } from '@temporalio/worker/lib/workflow/workflow-worker-thread/input.js';
import type { SinkCall } from '@temporalio/workflow';

/**
 * The thread that runs workflow code: Temporal's own sandbox, with less around it. A short turn is two activations.
 *
 * - One watchdog for each activation instead of one for each of the four or five calls into the sandbox. A watchdog is
 *   a thread of V8 and costs 138 µs. Endless code is still stopped, and only its own workflow task fails.
 * - One message and one answer for each activation. The first activation brings the options of its workflow, and log
 *   lines of the workflow come with its completion.
 * - Global variables stay when another workflow runs. Temporal swaps all of them, a hundred, for workflows that set
 *   some. Ours set none (`test/workflows/state.test.ts`).
 */

export type WorkflowActivation = proto.coresdk.workflow_activation.IWorkflowActivation;
export type WorkflowCompletion = proto.coresdk.workflow_completion.IWorkflowActivationCompletion;

export type ThreadInput =
  | Init
  /** `create`: the options of the workflow, with its first activation. */
  | { type: 'activate'; runId: string; activation: WorkflowActivation; create?: WorkflowCreateOptions }
  | { type: 'destroy' };

export interface ThreadRequest {
  requestId: bigint;
  input: ThreadInput;
}

/** The run id of a workflow to forget. It needs no answer. */
export interface Disposal {
  disposed: string;
}

export interface Activated {
  completion: WorkflowCompletion;
  /** What the workflow has logged, without the functions in `workflowInfo`, which no message can carry. */
  sinkCalls: SinkCall[];
}

if (parentPort === null) throw new Error('This is the entry of a thread.');
const port = parentPort;
/** Time limit for the code of one activation. The first message sets it. */
let timeoutMs: number;

// A stack for each promise of a workflow is a fifth of the thread's work, and serves only a query that is never made.
Object.defineProperty(globalHandlers, 'setPromiseHook', { value() {} });

const callInside = new Script('__TEMPORAL__.api[__atriumCall.name](...__atriumCall.args)');

type Inside = Context & { __TEMPORAL_ACTIVATOR__?: ConstructorParameters<typeof ReusableVMWorkflow>[2] };
type InsideModule = ConstructorParameters<typeof ReusableVMWorkflow>[3];

/** Temporal's creator of workflows, without swapping global variables. */
class Creator extends ReusableVMWorkflowCreator {
  override async createWorkflow(options: WorkflowCreateOptions): Promise<Workflow> {
    const inside: Inside = this.context;
    let activator: Inside['__TEMPORAL_ACTIVATOR__'];
    const call = (name: string | symbol, args: unknown[]) => {
      inside.__TEMPORAL_ACTIVATOR__ = activator;
      inside.__atriumCall = { name, args };
      // When it returns, the workflow has gone as far as it can.
      return callInside.runInContext(inside);
    };
    const module = new Proxy({} as InsideModule, {
      get:
        (_, name) =>
        (...args: unknown[]) =>
          call(name, args),
    });
    module.initRuntime({
      ...options,
      sourceMap: this.workflowBundle.sourceMap,
      getTimeOfDay: () => BigInt(Date.now()) * 1_000_000n,
      registeredActivityNames: this.registeredActivityNames,
      stackTracesEnabled: globalHandlers.promiseHookInstalled,
    });
    activator = inside.__TEMPORAL_ACTIVATOR__;
    if (activator === undefined) throw new Error('A workflow has not begun.');
    const workflow = new ReusableVMWorkflow(options.info.runId, inside, activator, module);
    ReusableVMWorkflowCreator.workflowByRunId.set(options.info.runId, workflow);
    return workflow;
  }
}

let creator: Creator | undefined;

/** The function that the watchdog watches. It has no arguments. */
let watched: () => void;
const watch = 'atriumWatch';
Object.defineProperty(globalThis, watch, { value: () => watched() });
const watchedScript = new Script(`${watch}()`);

async function activate({ runId, activation, create }: ThreadInput & { type: 'activate' }): Promise<Activated> {
  const find = () => ReusableVMWorkflowCreator.workflowByRunId.get(runId);
  let created: Promise<Workflow> | undefined;
  let completed: Promise<WorkflowCompletion> | undefined;
  watched = () => {
    if (create !== undefined) created = creator?.createWorkflow(create);
    // All workflow code runs before this promise first waits.
    completed = find()?.activate(proto.coresdk.workflow_activation.WorkflowActivation.fromObject(activation));
  };
  try {
    watchedScript.runInThisContext({ timeout: timeoutMs });
  } catch (error) {
    // This makes the workflow task fail. Temporal retries it.
    return { completion: { runId, failed: { failure: failureOf(error as Error) } }, sinkCalls: [] };
  }
  await created;
  if (completed === undefined) throw new Error(`There is no workflow with the run id ${runId}.`);
  const completion = await completed;
  const calls = (await find()?.getAndResetSinkCalls()) ?? [];
  return { completion, sinkCalls: calls.filter(isOfUse).map(asMessage) };
}

function failureOf({ name, message, stack }: Error) {
  return { message, stackTrace: stack, source: 'TypeScriptSDK', applicationFailureInfo: { type: name } };
}

/** Our log drops lines of Temporal below `info` (connection.ts), such as those at the start and end of a workflow. */
function isOfUse({ ifaceName, fnName }: SinkCall): boolean {
  return ifaceName !== '__temporal_logger' || (fnName !== 'trace' && fnName !== 'debug');
}

function asMessage(call: SinkCall): SinkCall {
  const { now: _now, random: _random, ...unsafe } = call.workflowInfo.unsafe;
  return { ...call, workflowInfo: { ...call.workflowInfo, unsafe: unsafe as typeof call.workflowInfo.unsafe } };
}

async function answer(input: ThreadInput): Promise<Activated | undefined> {
  switch (input.type) {
    case 'init':
      timeoutMs = input.isolateExecutionTimeoutMs;
      creator = await Creator.create(input.workflowBundle, timeoutMs, input.registeredActivityNames);
      return undefined;
    case 'activate':
      return activate(input);
    case 'destroy':
      await creator?.destroy();
      return undefined;
  }
}

port.on('message', async (message: ThreadRequest | Disposal) => {
  if ('disposed' in message) {
    void ReusableVMWorkflowCreator.workflowByRunId.get(message.disposed)?.dispose();
    return;
  }
  const { requestId, input } = message;
  try {
    port.postMessage({ requestId, result: { type: 'ok', output: await answer(input) } });
  } catch (error) {
    const { name, message: text, stack } = error as Error;
    port.postMessage({ requestId, result: { type: 'error', name, message: text, stack } });
  }
});
