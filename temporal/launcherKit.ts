import {
  type Client,
  type WithWorkflowArgs,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { SearchAttributePair, SignalDefinition, Workflow } from '@temporalio/common';
import type { Config } from '../config/index.ts';
import type { Logger } from '../telemetry/logger.ts';
import { mainTaskQueue } from './taskQueues.ts';

/** `absent`: Temporal does not know it, since it was never started or is past its retention. */
export type WorkflowState = 'running' | 'closed' | 'absent';

/** `late`: Temporal could not be reached. The request is in a row, and the sweeper will act on it. */
export type Reached = 'reached' | 'late';

/** How long Temporal may take to answer, in milliseconds: a server that hangs must not hold up the caller. */
const answerTimeoutMs = 10_000;
const startAttempts = 3;

export interface StartOptions<W extends Workflow> {
  workflowId: string;
  args: Parameters<W>;
  attributes: SearchAttributePair[];
  /** A host's queue; by default the one that all workers share. */
  taskQueue?: string;
  summary?: string;
  /** After which a workflow task whose worker is silent is given to another. */
  taskTimeoutMs?: number;
  /** The database makes its effect happen once, so a lost workflow may be started again under the same id. */
  mayStartAgain?: boolean;
}

/**
 * How all launchers start and signal workflows. A repeated start, by a retry or by the sweeper, finds the first one.
 * Starts and signals never reject: they are hints about rows that are already written.
 */
export function createLauncherKit(options: {
  client: Client;
  config: Config;
  logger: Logger;
  sharesWorkersConnection: boolean;
}) {
  const { client, config, logger, sharesWorkersConnection } = options;
  const mainQueue = mainTaskQueue(config.installation);

  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + answerTimeoutMs, call);

  async function reach(workflowId: string, call: () => Promise<unknown>): Promise<Reached> {
    try {
      await inTime(call);
      return 'reached';
    } catch (error) {
      // Another caller was first, or it has ended: the row's request is done or will be found.
      if (error instanceof WorkflowExecutionAlreadyStartedError || error instanceof WorkflowNotFoundError) {
        return 'reached';
      }
      logger.warn({ err: error, workflowId }, 'A workflow could not be reached; the sweeper will reach it.');
      return 'late';
    }
  }

  function begin<W extends Workflow>(workflow: W, start: StartOptions<W>): Promise<unknown> {
    const {
      workflowId,
      args,
      attributes,
      taskQueue = mainQueue,
      summary,
      taskTimeoutMs,
      mayStartAgain = false,
    } = start;
    const startOptions = {
      workflowId,
      args,
      taskQueue,
      typedSearchAttributes: attributes,
      workflowIdReusePolicy: mayStartAgain
        ? WorkflowIdReusePolicy.ALLOW_DUPLICATE
        : WorkflowIdReusePolicy.REJECT_DUPLICATE,
      // Only where client and worker share a connection, and only for the worker's own queue: elsewhere the server
      // refuses it.
      ...(sharesWorkersConnection && taskQueue === mainQueue && { requestEagerStart: true }),
      ...(summary !== undefined && { staticSummary: summary }),
      ...(taskTimeoutMs !== undefined && { workflowTaskTimeout: taskTimeoutMs }),
    } as unknown as WithWorkflowArgs<W, WorkflowStartOptions>;
    return client.workflow.start(workflow, startOptions);
  }

  return {
    start<W extends Workflow>(workflow: W, start: StartOptions<W>): Promise<Reached> {
      return reach(start.workflowId, () => begin(workflow, start));
    },

    /**
     * Starts the workflow of an object, or signals it where it runs already. Not by a signal with a start, which the
     * server gives to no worker at once.
     */
    startOrSignal<W extends Workflow>(workflow: W, signal: SignalDefinition, start: StartOptions<W>): Promise<Reached> {
      const { workflowId } = start;
      return reach(workflowId, async () => {
        for (let attempt = 1; ; attempt++) {
          try {
            return await begin(workflow, start);
          } catch (error) {
            if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
          }
          try {
            return await client.workflow.getHandle(workflowId).signal(signal);
          } catch (error) {
            // It has ended in between.
            if (!(error instanceof WorkflowNotFoundError) || attempt === startAttempts) throw error;
          }
        }
      });
    },

    signal(workflowId: string, signal: SignalDefinition): Promise<Reached> {
      return reach(workflowId, () => client.workflow.getHandle(workflowId).signal(signal));
    },

    cancel(workflowId: string): Promise<Reached> {
      return reach(workflowId, () => client.workflow.getHandle(workflowId).cancel());
    },

    /**
     * The keys whose workflow is running, by one query of Temporal's list. The list lags a little: a key that it does
     * not name must still be checked with `describe`, and so must all of them when the list fails.
     */
    async running<Key>(keys: readonly Key[], workflowIdOf: (key: Key) => string): Promise<Set<Key>> {
      const byId = new Map(keys.map((key) => [workflowIdOf(key), key]));
      const found = new Set<Key>();
      const names = [...byId.keys()].map((id) => `'${id.replaceAll("'", "''")}'`).join(', ');
      const query = `ExecutionStatus = 'Running' AND WorkflowId IN (${names})`;
      if (byId.size === 0) return found;
      try {
        await inTime(async () => {
          for await (const { workflowId } of client.workflow.list({ query, pageSize: byId.size })) {
            const key = byId.get(workflowId);
            if (key !== undefined) found.add(key);
          }
        });
      } catch (error) {
        logger.warn({ err: error }, 'Workflows could not be listed; each is asked about by itself.');
      }
      return found;
    },

    /** Rejects when Temporal does not answer: "unknown" is not a state. */
    async describe(workflowId: string): Promise<WorkflowState> {
      try {
        const { status } = await inTime(() => client.workflow.getHandle(workflowId).describe());
        return status.name === 'RUNNING' ? 'running' : 'closed';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return 'absent';
        throw error;
      }
    },
  };
}

export type LauncherKit = ReturnType<typeof createLauncherKit>;
