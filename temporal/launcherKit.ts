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

/** `absent`: Temporal knows of none, since it was never started or is past its retention. */
export type WorkflowState = 'running' | 'closed' | 'absent';

/** `late`: Temporal could not be reached. What was asked for is in a row, and the sweeper sees to it. */
export type Reached = 'reached' | 'late';

/** How long Temporal may take to answer, in milliseconds: a server that has stopped must not hold up whoever asks. */
const answerTimeoutMs = 10_000;

export interface StartOptions<W extends Workflow> {
  workflowId: string;
  args: Parameters<W>;
  attributes: SearchAttributePair[];
  /** The queue of a host; by default the one of all workers. */
  taskQueue?: string;
  summary?: string;
  /** Its effect is once by the database, so that one whose workflow was lost may be started again under the same id. */
  mayStartAgain?: boolean;
}

/**
 * What all launchers start and signal workflows with. A start that is repeated, by a retry or by the sweeper, finds the
 * first one. Starts and signals never reject: they are hints about rows that are written already.
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
      // Somebody else was first, or it has ended: what the row says is done or will be found.
      if (error instanceof WorkflowExecutionAlreadyStartedError || error instanceof WorkflowNotFoundError) {
        return 'reached';
      }
      logger.warn({ err: error, workflowId }, 'A workflow could not be reached; the sweeper will reach it.');
      return 'late';
    }
  }

  return {
    start<W extends Workflow>(workflow: W, start: StartOptions<W>): Promise<Reached> {
      const { workflowId, args, attributes, taskQueue = mainQueue, summary, mayStartAgain = false } = start;
      const startOptions = {
        workflowId,
        args,
        taskQueue,
        typedSearchAttributes: attributes,
        workflowIdReusePolicy: mayStartAgain
          ? WorkflowIdReusePolicy.ALLOW_DUPLICATE
          : WorkflowIdReusePolicy.REJECT_DUPLICATE,
        // Only where client and worker share a connection, and for the worker's own queue: elsewhere, asking for it is
        // an error.
        ...(sharesWorkersConnection && taskQueue === mainQueue && { requestEagerStart: true }),
        ...(summary !== undefined && { staticSummary: summary }),
      } as unknown as WithWorkflowArgs<W, WorkflowStartOptions>;
      return reach(workflowId, () => client.workflow.start(workflow, startOptions));
    },

    signal(workflowId: string, signal: SignalDefinition): Promise<Reached> {
      return reach(workflowId, () => client.workflow.getHandle(workflowId).signal(signal));
    },

    cancel(workflowId: string): Promise<Reached> {
      return reach(workflowId, () => client.workflow.getHandle(workflowId).cancel());
    },

    /**
     * Those of the keys whose workflow is running, by one look at Temporal's list. The list lags behind a little: what
     * it does not name is yet to be asked about (`describe`), and so is everything when there is no list.
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

    /** Rejects when Temporal does not answer: not to know is no state. */
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
