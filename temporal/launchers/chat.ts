import type { Config } from '../../config/index.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { runChatTurn, stopTurnSignal } from '../../workflows/chat/runChatTurn.ts';
import { toolsAnsweredSignal } from '../../workflows/chat/toolCalls.ts';
import type { LauncherKit, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey, threadIdKey, userIdKey } from '../searchKeys.ts';
import { turnWorkflowId } from '../workflowIds.ts';

/** What a turn's workflow is started with, taken from its row. */
export type TurnReference = Pick<Turn, 'id' | 'spaceId' | 'threadId' | 'userId' | 'modelId'>;

/**
 * Begins a new turn's work in this process before its workflow is started; resolves when it is time to start the
 * workflow. Never rejects.
 */
export type HeadStart = (turn: Turn) => Promise<void>;

export function createChatLauncher(kit: LauncherKit, { chat, temporal }: Config, headStart?: HeadStart) {
  function startTurn(turn: TurnReference): Promise<Reached> {
    return kit.start(runChatTurn, {
      workflowId: turnWorkflowId(turn.id),
      args: [
        {
          turnId: turn.id,
          modelId: turn.modelId,
          maxSteps: chat.maxStepsPerTurn,
          heartbeatTimeoutMs: temporal.heartbeatTimeoutMs,
          workTimeMs: chat.maxWorkMsPerTurn,
          maxHistoryEvents: temporal.maxHistoryEvents,
        },
      ],
      attributes: [
        { key: spaceIdKey, value: turn.spaceId },
        { key: threadIdKey, value: turn.threadId },
        { key: userIdKey, value: turn.userId },
        { key: kindKey, value: 'turn' },
      ],
      summary: `Chat turn on ${turn.modelId}`,
    });
  }

  return {
    /** Starts a turn's workflow, which may have been started already. */
    startTurn,

    /** Starts the workflow of a turn that this caller has just created. */
    async startNewTurn(turn: Turn): Promise<Reached> {
      await headStart?.(turn);
      return startTurn(turn);
    },

    /** Asks a running turn to stop. The sweeper ends a turn whose workflow is gone. */
    stopTurn: (turnId: string) => kit.signal(turnWorkflowId(turnId), stopTurnSignal),

    /** Tells a waiting turn that one of its calls has been answered. */
    toolsAnswered: (turnId: string) => kit.signal(turnWorkflowId(turnId), toolsAnsweredSignal),

    describeTurn: (turnId: string) => kit.describe(turnWorkflowId(turnId)),
    runningTurns: (turnIds: readonly string[]) => kit.running(turnIds, turnWorkflowId),
  };
}
