import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, type SearchAttributePair, SearchAttributeType } from '@temporalio/common';
import type { Config } from '../config/index.ts';
import type { Turn } from '../models/chat/turn.ts';
import { settlePayment } from '../workflows/billing/settlePayment.ts';
import { checkoutChangedSignal } from '../workflows/billing/topUp.ts';
import { runChatTurn, stopTurnSignal } from '../workflows/chat/runChatTurn.ts';
import { toolsAnsweredSignal } from '../workflows/chat/toolCalls.ts';
import { sendMail } from '../workflows/mail/sendMail.ts';
import { operationStarts } from './operationStarts.ts';
import { ensureReconciliation } from './reconcileSchedule.ts';
import { ensureSweeper } from './sweeperSchedule.ts';
import { mainTaskQueue } from './taskQueues.ts';
import { mailWorkflowId, operationWorkflowId, settlementWorkflowId, turnWorkflowId } from './workflowIds.ts';

/** What a workflow is started with, read off the row that is its intent. */
export interface TurnReference {
  id: string;
  spaceId: string;
  threadId: string;
  userId: string;
  modelId: string;
}

export interface OperationReference {
  id: string;
  kind: string;
  spaceId: string | null;
  userId: string;
  subjectId: string;
}

/** `absent`: Temporal knows of none, since it was never started or is past its retention. */
export type WorkflowState = 'running' | 'closed' | 'absent';

const spaceIdKey = defineSearchAttributeKey('SpaceId', SearchAttributeType.KEYWORD);
const threadIdKey = defineSearchAttributeKey('ThreadId', SearchAttributeType.KEYWORD);
const userIdKey = defineSearchAttributeKey('UserId', SearchAttributeType.KEYWORD);
const kindKey = defineSearchAttributeKey('Kind', SearchAttributeType.KEYWORD);

/**
 * The only place where workflows are started and signalled: by function, with ids made from the row, and "already started" as a result. A
 * start that is repeated, by a retry or by the sweeper, finds the first one.
 */
export function createLauncher(options: {
  client: Client;
  config: Config;
  sharesWorkersConnection: boolean;
  /** Begins a new turn's work in this process before its workflow is started, and says when to start that. Never rejects. */
  headStart?: (turn: Turn) => Promise<void>;
}) {
  const { client, config, sharesWorkersConnection, headStart } = options;
  const taskQueue = mainTaskQueue(config.installation);
  const common = {
    taskQueue,
    workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
    // Only where client and worker share a connection: on any other, asking for it is an error.
    ...(sharesWorkersConnection && { requestEagerStart: true }),
  };

  async function once(start: Promise<unknown>): Promise<void> {
    try {
      await start;
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  }

  async function describe(workflowId: string): Promise<WorkflowState> {
    try {
      const { status } = await client.workflow.getHandle(workflowId).describe();
      return status.name === 'RUNNING' ? 'running' : 'closed';
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'absent';
      throw error;
    }
  }

  async function startTurn(turn: TurnReference): Promise<void> {
    await once(
      client.workflow.start(runChatTurn, {
        ...common,
        workflowId: turnWorkflowId(turn.id),
        args: [
          {
            turnId: turn.id,
            modelId: turn.modelId,
            maxSteps: config.chat.maxStepsPerTurn,
            heartbeatTimeoutMs: config.temporal.heartbeatTimeoutMs,
            workTimeMs: config.chat.maxWorkMsPerTurn,
            maxHistoryEvents: config.temporal.maxHistoryEvents,
          },
        ],
        typedSearchAttributes: [
          { key: spaceIdKey, value: turn.spaceId },
          { key: threadIdKey, value: turn.threadId },
          { key: userIdKey, value: turn.userId },
          { key: kindKey, value: 'turn' },
        ],
        staticSummary: `Chat turn on ${turn.modelId}`,
      }),
    );
  }

  return {
    /** Starts a turn's workflow, whoever else may have started it. */
    startTurn,

    /** Starts the workflow of a turn that was made just now, by this caller alone. */
    async startNewTurn(turn: Turn): Promise<void> {
      await headStart?.(turn);
      await startTurn(turn);
    },

    /** Asks a running turn to stop. One whose workflow is gone is ended by the sweeper. */
    async stopTurn(turnId: string): Promise<void> {
      try {
        await client.workflow.getHandle(turnWorkflowId(turnId)).signal(stopTurnSignal);
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },

    /** Tells a waiting turn that a call of it has been answered. */
    async toolsAnswered(turnId: string): Promise<void> {
      try {
        await client.workflow.getHandle(turnWorkflowId(turnId)).signal(toolsAnsweredSignal);
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },

    async startOperation(operation: OperationReference): Promise<void> {
      const attributes: SearchAttributePair[] = [
        { key: userIdKey, value: operation.userId },
        { key: kindKey, value: operation.kind },
      ];
      if (operation.spaceId !== null) attributes.push({ key: spaceIdKey, value: operation.spaceId });
      const startOptions = {
        ...common,
        workflowId: operationWorkflowId(operation.kind, operation.id),
        typedSearchAttributes: attributes,
      };
      const start = operationStarts[operation.kind];
      if (start === undefined) throw new Error(`No workflow is known for operations of kind ${operation.kind}.`);
      const { workflow, args } = start(operation, config);
      return once(client.workflow.start(workflow, { ...startOptions, args }));
    },

    /** Sends a mail that waits in the table. */
    async startMail(mailId: string): Promise<void> {
      await once(
        client.workflow.start(sendMail, {
          ...common,
          workflowId: mailWorkflowId(mailId),
          args: [mailId],
          typedSearchAttributes: [{ key: kindKey, value: 'mail' }],
          staticSummary: 'Send a mail',
        }),
      );
    },

    /** Asks an operation's workflow to cancel. */
    async cancelOperation(operation: OperationReference): Promise<void> {
      try {
        await client.workflow.getHandle(operationWorkflowId(operation.kind, operation.id)).cancel();
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },

    describeTurn: (turnId: string) => describe(turnWorkflowId(turnId)),
    describeMail: (mailId: string) => describe(mailWorkflowId(mailId)),
    describeOperation: (kind: string, id: string) => describe(operationWorkflowId(kind, id)),

    /** Settles a kept notification. Its effect is once by the database, so a workflow that was lost may be started again. */
    async startSettlement(eventId: string): Promise<void> {
      await once(
        client.workflow.start(settlePayment, {
          ...common,
          workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
          workflowId: settlementWorkflowId(eventId),
          args: [{ eventId }],
          typedSearchAttributes: [{ key: kindKey, value: 'settlePayment' }],
        }),
      );
    },

    /** Tells a purchase's workflow that its checkout has changed. */
    async checkoutChanged(checkout: { kind: string; operationId: string }): Promise<void> {
      try {
        const workflowId = operationWorkflowId(checkout.kind, checkout.operationId);
        await client.workflow.getHandle(workflowId).signal(checkoutChangedSignal);
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },

    /** Makes the reconciliation's schedule, or brings it up to date. */
    ensureReconciliation: () => ensureReconciliation(client, config, taskQueue),

    /** Makes the sweeper's schedule, or brings it up to date. */
    ensureSweeper: () => ensureSweeper(client, config, taskQueue),
  };
}

export type Launcher = ReturnType<typeof createLauncher>;
