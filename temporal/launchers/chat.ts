import type { ChatSettings } from '../../models/chat/settings.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { runChatTurn, stopTurnSignal } from '../../workflows/chat/runChatTurn.ts';
import { toolsAnsweredSignal } from '../../workflows/chat/toolCalls.ts';
import type { LauncherParts, Reached } from '../launcherKit.ts';
import { kindKey, spaceIdKey, threadIdKey, userIdKey } from '../searchKeys.ts';
import { turnWorkflowId } from '../workflowIds.ts';

/** The part of a turn's row that its workflow is started with. */
export type TurnReference = Pick<Turn, 'id' | 'spaceId' | 'threadId' | 'userId' | 'modelId'>;

/** The server's own limit of a workflow task. */
const longestTaskMs = 10_000;

export function createChatLauncher({ config: { chat, temporal }, headStart, kit }: LauncherParts) {
  function start(turn: TurnReference): Promise<Reached> {
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
      // The turn's first model call is part of a workflow task.
      taskTimeoutMs: Math.min(temporal.heartbeatTimeoutMs, longestTaskMs),
    });
  }

  return {
    startTurn: start,

    /** How long this process holds a new turn's first step for its head start. Undefined if it would not begin one. */
    headStartHoldMs: () => headStart?.holdMs(),

    /** Starts the workflow of a turn that this caller has just created, under its space's settings. */
    async startNewTurn(turn: Turn, settings: ChatSettings): Promise<Reached> {
      await headStart?.begin(turn, settings);
      return start(turn);
    },

    /** Asks a running turn to stop. The sweeper ends a turn whose workflow is gone. */
    stopTurn: (turnId: string) => kit.signal(turnWorkflowId(turnId), stopTurnSignal),

    /** Tells a waiting turn that one of its calls has been answered. */
    toolsAnswered: (turnId: string) => kit.signal(turnWorkflowId(turnId), toolsAnsweredSignal),

    describeTurn: (turnId: string) => kit.describe(turnWorkflowId(turnId)),
    runningTurns: (turnIds: readonly string[]) => kit.running(turnIds, turnWorkflowId),
  };
}
