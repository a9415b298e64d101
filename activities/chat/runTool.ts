import { shorten } from '../../models/chat/largeResults.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { failedResult, type ResultChunk, succeededResult } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { DomainError } from '../../models/errors.ts';
import { resolveSecretReferences } from '../../models/secrets/references.ts';
import { keepAlive } from '../keepAlive.ts';
import { LargeResults, type LargeResultTicket } from '../tools/largeResults.ts';
import { needsApproval, type ServerTool, secretRefusal, type ToolContext } from '../tools/tool.ts';
import { isStopByWorkflow } from './cancellation.ts';
import type { ChatDeps } from './deps.ts';
import { settleToolCall } from './settleToolCall.ts';

export interface RunToolInput {
  turnId: string;
  step: number;
  toolCallId: string;
}

const interrupted =
  'The tool was interrupted while it ran. Whether it had its effect is not known: look before you try again.';

const notAllowed = 'The user has to allow this first. Call the tool again.';

/**
 * Runs one tool call and puts its result into the turn's log. The row's change and the chunk are one commit, so the
 * result is there once, however often the activity runs; the tool's effect happens once too, as its definition says.
 * Secrets go in by reference, and do not come out.
 */
export function createRunTool(deps: ChatDeps) {
  const largeResults = new LargeResults();
  return async function runTool({ toolCallId }: RunToolInput): Promise<void> {
    const call = await chatModels(deps.database).ToolCall.findByPk(toolCallId);
    if (call === null || call.status !== 'pending' || !call.mayRun) return;
    const turn = await chatModels(deps.database).Turn.findByPk(call.turnId);
    if (turn === null || turn.isTerminal || turn.stopRequestedAt !== null) return;
    const result = await resultOf(deps, largeResults, call, turn);
    if (result !== undefined) await settleToolCall(deps, call, result);
  };
}

/** Undefined when the turn is to stop: the turn's end settles the call. */
async function resultOf(
  deps: ChatDeps,
  largeResults: LargeResults,
  call: ToolCall,
  turn: Turn,
): Promise<ResultChunk | undefined> {
  if (call.effect !== null) return succeededResult(call.id, call.effect.result);
  const found = await deps.tools.find(turn, call.toolName);
  if ('refused' in found) return failedResult(call.id, found.refused);
  const { tool } = found;
  if (tool.runs === 'client') {
    return failedResult(call.id, deps.tools.faultsOf(tool, call.input) ?? `${tool.name} cannot be used here.`);
  }
  const refused = secretRefusal(tool, call.input, turn);
  if (refused !== undefined) return failedResult(call.id, refused);
  // Nobody approved a tool that was not offered, or not dangerous, when the model called it.
  if (needsApproval(tool, call.input) && call.decision !== 'approved') return failedResult(call.id, notAllowed);
  const isFirst = await chatModels(deps.database).ToolCall.begin(call.id);
  if (!isFirst && tool.afterCrash === 'never') return failedResult(call.id, interrupted);
  using large = largeResults.ticket(turn.spaceId);
  return await run(deps, large, call, turn, tool);
}

async function run(
  deps: ChatDeps,
  large: LargeResultTicket,
  call: ToolCall,
  turn: Turn,
  tool: ServerTool,
): Promise<ResultChunk | undefined> {
  using heartbeat = keepAlive();
  using stop = deps.stopWatch.watch(turn.id);
  const { config, database, storage, logger } = deps;
  const onFailure = (error: unknown) =>
    logger.warn({ err: error, turnId: turn.id, toolCallId: call.id }, 'A large tool result could not be stored.');
  const store = { database, storage, limits: config.drive, onFailure };
  const late = AbortSignal.timeout(tool.timeoutMs);
  const signal = AbortSignal.any([heartbeat.cancelled, stop.signal, late, large.overdue]);
  const admitLarge = () => large.admit(signal);
  try {
    const output = await untilAborted(
      callTool(deps, tool, call, { turn, toolCallId: call.id, signal, admitLarge, record }),
      signal,
    );
    // Read only now, since the tool itself may have set a secret.
    const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
    return succeededResult(call.id, await shorten(store, turn, call.id, redactor.json(output)));
  } catch (error) {
    if (stop.signal.aborted || isStopByWorkflow(heartbeat.cancelled)) return undefined;
    heartbeat.cancelled.throwIfAborted();
    if (late.aborted) return failedResult(call.id, `The tool took longer than ${tool.timeoutMs / 1_000} seconds.`);
    if (large.overdue.aborted)
      return failedResult(call.id, 'The result is too large to come in time. Ask for less of it.');
    if (error instanceof DomainError) {
      const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
      return failedResult(call.id, redactor.text(error.message));
    }
    deps.logger.error({ err: error, turnId: turn.id, toolCallId: call.id, toolName: tool.name }, 'A tool has failed.');
    return failedResult(call.id, 'The tool has failed.');
  }

  async function record(tx: Parameters<ToolContext['record']>[0], result: unknown): Promise<void> {
    const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
    if (!(await chatModels(deps.database).ToolCall.recordEffect(call.id, redactor.json(result), tx)))
      throw new Error('The call is done, or has ended.');
  }
}

async function callTool(deps: ChatDeps, tool: ServerTool, call: ToolCall, context: ToolContext): Promise<unknown> {
  const { spaceId, userId } = context.turn;
  const { dynamic } = deps.secrets;
  const input = await resolveSecretReferences(call.input, (ids) => dynamic.use(spaceId, userId, ids));
  const faults = deps.tools.faultsOf(tool, input);
  if (faults !== undefined) throw new DomainError('invalid', 'TOOL_INPUT_INVALID', faults);
  return tool.run(input as never, context);
}

/** A tool that ignores its signal does not hold anything up. If it tries to have its effect later, `record` refuses. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
