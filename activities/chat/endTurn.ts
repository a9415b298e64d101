import { isProviderErrorCode, providerErrorMessage } from '../../integrations/chat/errors.ts';
import { type EndedTurn, endTurn as endTurnInModel, type TurnEnd } from '../../models/chat/endTurn.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Thread } from '../../models/chat/thread.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { transaction } from '../../models/database/database.ts';
import type { TurnEndInput } from '../../workflows/chat/rules/turnEnd.ts';
import type { ChatDeps } from './deps.ts';

export interface EndTurnInput {
  turnId: string;
  end: TurnEndInput;
}

/** The push subscriptions, by id, to notify that a turn has ended or waits, unless its user has seen that already. */
export interface Audience {
  /** The sequence number of the turn's last chunk. */
  seq: number;
  subscriptionIds: string[];
}

/** The work that is left when a turn has ended; undefined for most turns. */
export interface AfterTurn {
  audience?: Audience;
  namesThread?: boolean;
}

/** Ends a turn, once, and starts the workflow of the thread's next one. */
export function createEndTurn(deps: ChatDeps) {
  return async function endTurn({ turnId, end }: EndTurnInput): Promise<AfterTurn | undefined> {
    const ended = await endTurnInModel(deps, turnId, withDetail(end));
    if (end.status !== 'completed') {
      if (ended.turn !== null) await settleCut(deps, ended.turn);
      await deps.metering.release(turnId);
      // Not awaited: processes that this does not reach end by their own time limits.
      if (ended.turn !== null) void abandonCalls(deps, ended.turn);
    }
    return followUp(deps, ended, end);
  };
}

/** Charges for the output of calls that the turn's end has cut off. Their text is kept, so it must be paid for. */
async function settleCut({ database, metering }: ChatDeps, turn: Turn): Promise<void> {
  for (const { step, modelId } of await chatModels(database).ModelCall.cutOf(turn.id)) {
    await transaction(database, (tx) => metering.settle(tx, { turn, step, modelId }, undefined));
  }
}

/** Reports the end of a turn, starts the thread's next turn, and returns the work that is left. */
export async function followUp(
  deps: ChatDeps,
  { ended, turn, thread, nextTurn }: EndedTurn,
  { status }: Pick<TurnEndInput, 'status'>,
): Promise<AfterTurn | undefined> {
  if (ended && turn !== null) noteEnd(deps, turn);
  if (nextTurn !== undefined) await deps.workflows.startTurn(nextTurn);
  // A turn that its owner has stopped is not news to them.
  if (turn === null || status === 'stopped') return undefined;
  const audience = await audienceOf(deps, turn);
  const namesThread = status === 'completed' && wantsName(deps, turn, thread);
  if (audience === undefined && !namesThread) return undefined;
  return { ...(audience && { audience }), ...(namesThread && { namesThread }) };
}

/** The devices of the turn's owner, if there are any. */
export async function audienceOf(
  deps: Pick<ChatDeps, 'push'>,
  turn: Pick<Turn, 'userId' | 'nextSeq'>,
): Promise<Audience | undefined> {
  const subscriptionIds = await deps.push.subscriptions.idsOf(turn.userId);
  return subscriptionIds.length === 0 ? undefined : { seq: turn.nextSeq - 1, subscriptionIds };
}

/** Writes one log line and counts one turn, for the operator. */
export function noteEnd({ logger, meters }: Pick<ChatDeps, 'logger' | 'meters'>, turn: Turn): void {
  const { id: turnId, threadId, spaceId, modelId, status, finishReason, errorCode: code } = turn;
  const seconds = turn.startedAt === null ? 0 : (Date.now() - turn.startedAt.getTime()) / 1_000;
  meters.turnEnded({ modelId, status, code, seconds });
  logger.info({ turnId, threadId, spaceId, modelId, status, finishReason, code, seconds }, 'A turn has ended.');
}

function wantsName(deps: ChatDeps, turn: Turn, thread: Thread | null): boolean {
  if (deps.catalogue.titleModelFor(turn.modelId) === undefined) return false;
  return thread !== null && thread.deletedAt === null && thread.title === null;
}

function withDetail(end: TurnEndInput): TurnEnd {
  return end.status === 'failed' ? { ...end, detail: describeTurnError(end.code) } : end;
}

/**
 * Ends the processes that a turn's tool calls left running, if the turn ended before the calls did. A worker that was
 * killed could not end them. Never rejects.
 */
async function abandonCalls(
  { database, tools, logger }: Pick<ChatDeps, 'database' | 'tools' | 'logger'>,
  turn: Turn,
): Promise<void> {
  const failed = (error: unknown, toolCallId?: string) =>
    logger.warn(
      { err: error, turnId: turn.id, toolCallId },
      'What the calls of a turn have left running could not be ended.',
    );
  const cut = await chatModels(database)
    .ToolCall.cutOf(turn.id)
    .catch((error: unknown) => failed(error));
  // One failure, such as a computer that is gone, must not keep the other calls running.
  for (const { id: toolCallId, toolName, target } of cut ?? []) {
    const call = { turn, toolCallId, target: target?.identity ?? '' };
    await tools.abandon(toolName, call).catch((error: unknown) => failed(error, toolCallId));
  }
}

const details: Record<string, string> = {
  STEP_LIMIT: 'The turn reached its limit of steps. Send another message to go on.',
  TOOL_CALL_LIMIT: 'The turn reached its limit of tool calls. Send another message to go on.',
  TIME_LIMIT:
    'The turn has worked for as long as a turn may. The answer so far is kept. Send another message to go on.',
  TOOL_LOOP: 'The model made the same tool calls again and again, so the turn was ended.',
  CREDITS_EXHAUSTED: 'The space has no credits left for this answer.',
  SPENDING_CAP_REACHED: 'A spending cap of the space is reached. Its owner can raise it.',
  WORKFLOW_LOST: 'The turn was ended by an operator or lost by the workflow server.',
  ANSWER_TOO_LARGE: 'The answer is larger than the database takes. Its beginning is kept.',
  ANSWER_CUT_TOO_OFTEN:
    'The answer was cut off again and again while the model spoke. What it said last is kept. Ask again, or for a shorter one.',
  INTERNAL: 'Something went wrong on our side. The answer so far is kept.',
};

/**
 * The sentence that a client reads for a turn's error code. It is written here, so that no provider's text reaches a
 * client.
 */
export function describeTurnError(code: string): string {
  if (isProviderErrorCode(code)) return providerErrorMessage(code);
  return details[code] ?? 'The turn could not be completed.';
}
