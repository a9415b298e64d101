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
import type { ChatSettings } from '../models/chat/settings.ts';
import type { Turn } from '../models/chat/turn.ts';
import type { Logger } from '../telemetry/logger.ts';
import { type ActorInput, changedSignal, interruptedSignal } from '../workflows/actor.ts';
import type { ScheduleKit } from './schedules/scheduleKit.ts';
import { kindKey, spaceIdKey } from './searchKeys.ts';
import { mainTaskQueue } from './taskQueues.ts';
import { actorWorkflowId } from './workflowIds.ts';

/** `absent`: Temporal does not know the workflow. It was never started, or is past its retention. */
export type WorkflowState = 'running' | 'closed' | 'absent';

/** `late`: Temporal could not be reached. The request is in a row, and the sweeper will act on it. */
export type Reached = 'reached' | 'late';

/** How long Temporal may take to answer, in milliseconds. A server that hangs must not hold up the caller. */
const answerTimeoutMs = 10_000;
const startAttempts = 3;

/** The row of an actor. */
export interface ActorReference {
  id: string;
  spaceId: string;
}

export interface StartOptions<W extends Workflow> {
  workflowId: string;
  args: Parameters<W>;
  attributes: SearchAttributePair[];
  /** A host's queue. Default: the queue that all workers share. */
  taskQueue?: string;
  summary?: string;
  /** A workflow task whose worker is silent for this long goes to another worker. */
  taskTimeoutMs?: number;
  /** Set when the database makes the effect happen once. A lost workflow may then start again under the same id. */
  mayStartAgain?: boolean;
}

/**
 * How all launchers start and signal workflows. A repeated start, by a retry or by the sweeper, finds the first one.
 * Starts and signals never reject, because they are hints about rows that are already written.
 */
export function createLauncherKit(options: {
  client: Client;
  config: Config;
  logger: Logger;
  sharesWorkersConnection: boolean;
}) {
  const { client, config, logger, sharesWorkersConnection } = options;
  const mainQueue = mainTaskQueue(config.installation);
  const { heartbeatTimeoutMs, maxHistoryEvents } = config.temporal;

  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + answerTimeoutMs, call);

  async function reach(workflowId: string, call: () => Promise<unknown>): Promise<Reached> {
    try {
      await inTime(call);
      return 'reached';
    } catch (error) {
      // Another caller was first, or the workflow has ended. The row's request is done or will be found.
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
      // Only if client and worker share a connection, and only for the worker's own queue. Otherwise the server refuses
      // it.
      ...(sharesWorkersConnection && taskQueue === mainQueue && { requestEagerStart: true }),
      ...(summary !== undefined && { staticSummary: summary }),
      ...(taskTimeoutMs !== undefined && { workflowTaskTimeout: taskTimeoutMs }),
    } as unknown as WithWorkflowArgs<W, WorkflowStartOptions>;
    return client.workflow.start(workflow, startOptions);
  }

  /**
   * Starts a workflow, or signals it if it is running already. Does not use signal-with-start, for which the server
   * allows no eager start.
   */
  function startOrSignal<W extends Workflow>(
    workflow: W,
    signal: SignalDefinition,
    start: StartOptions<W>,
  ): Promise<Reached> {
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
          // The workflow has ended in between.
          if (!(error instanceof WorkflowNotFoundError) || attempt === startAttempts) throw error;
        }
      }
    });
  }

  /**
   * The keys whose workflow is running, by one query of Temporal's list. The list lags a little, so a key that is
   * missing must still be checked with `describe`. So must all keys when the list fails.
   */
  async function running<Key>(keys: readonly Key[], workflowIdOf: (key: Key) => string): Promise<Set<Key>> {
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
      logger.warn({ err: error }, 'Workflows could not be listed; each one is queried separately.');
    }
    return found;
  }

  return {
    start<W extends Workflow>(workflow: W, start: StartOptions<W>): Promise<Reached> {
      return reach(start.workflowId, () => begin(workflow, start));
    },

    /** The actors that have this workflow: functions that start, tell and find them. */
    actor<Input extends ActorInput>(
      workflow: (input: Input) => Promise<unknown>,
      { inputOf, summary }: { inputOf(id: string, limits: ActorInput): Input; summary: string },
    ) {
      const kind = workflow.name;
      const telling =
        (signal: SignalDefinition) =>
        ({ id, spaceId }: ActorReference): Promise<Reached> =>
          startOrSignal(workflow, signal, {
            workflowId: actorWorkflowId(kind, id),
            args: [inputOf(id, { heartbeatTimeoutMs, maxHistoryEvents })],
            attributes: [
              { key: spaceIdKey, value: spaceId },
              { key: kindKey, value: kind },
            ],
            summary,
            mayStartAgain: true,
          });
      return {
        /** Makes an actor look at its row, and starts its workflow if it is not running. */
        tell: telling(changedSignal),
        /** The same, and asks the step in progress to stop. */
        interrupt: telling(interruptedSignal),
        /** The actors whose workflow is running. */
        running: <Reference extends ActorReference>(references: readonly Reference[]) =>
          running(references, ({ id }) => actorWorkflowId(kind, id)),
      };
    },

    signal(workflowId: string, signal: SignalDefinition): Promise<Reached> {
      return reach(workflowId, () => client.workflow.getHandle(workflowId).signal(signal));
    },

    cancel(workflowId: string): Promise<Reached> {
      return reach(workflowId, () => client.workflow.getHandle(workflowId).cancel());
    },

    running,

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

/** Begins a new turn's work in this process before its workflow is started. */
export interface HeadStart {
  /** For how long at a time it holds the first step of a turn, in milliseconds; absent where it would not begin one. */
  holdMs(): number | undefined;
  /** Resolves when it is time to start the workflow. Never rejects. */
  begin(turn: Turn, settings: ChatSettings): Promise<void>;
}

/** What the launchers of an area are made of. */
export interface LauncherParts {
  kit: LauncherKit;
  schedules: ScheduleKit;
  config: Config;
  logger: Logger;
  /** Absent where this process begins no turns. */
  headStart: HeadStart | undefined;
}
