import { untilAborted } from '../../base/async.ts';
import { DomainError } from '../../base/errors.ts';
import { shorten } from '../../models/chat/largeResults.ts';
import { chatModels } from '../../models/chat/models.ts';
import { keepPicture } from '../../models/chat/resultPictures.ts';
import type { TargetOfCall, ToolCall } from '../../models/chat/toolCall.ts';
import { failedResult, type ResultChunk, succeededResult } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { loadContext } from '../../models/chat/turnContext.ts';
import { isAway } from '../../models/database/unavailable.ts';
import { resolveSecretReferences } from '../../models/secrets/references.ts';
import { keepAlive } from '../keepAlive.ts';
import { LargeResults, type LargeResultTicket } from '../tools/largeResults.ts';
import { NothingDone, needsApproval, type ServerTool, secretRefusal, type ToolContext } from '../tools/tool.ts';
import { untilBack } from '../untilBack.ts';
import { CallOutput } from './callOutput.ts';
import type { ChatDeps } from './deps.ts';
import { isStopByWorkflow } from './stopWatch.ts';
import {
  interrupted,
  notAllowed,
  notRun,
  resultLost,
  settleToolCall,
  targetChanged,
  targetOfCall,
  tookTooLong,
} from './toolCalls.ts';

export interface RunToolInput {
  turnId: string;
  step: number;
  toolCallId: string;
}

/**
 * Runs one tool call and puts its result into the turn's log. The row's change and the chunk are one commit, so the
 * result appears once, however often the activity runs. `afterCrash` in the tool's definition keeps its effect from
 * happening twice. Secrets enter the tool by reference and are redacted from its result.
 */
export function createRunTool(deps: ChatDeps) {
  const largeResults = new LargeResults();
  return async function runTool({ toolCallId }: RunToolInput): Promise<void> {
    const call = await chatModels(deps.database).ToolCall.findByPk(toolCallId);
    if (call === null || call.status !== 'pending' || !call.mayRun) return;
    const turn = await chatModels(deps.database).Turn.findByPk(call.turnId);
    if (turn === null || turn.isTerminal || turn.stopRequestedAt !== null) return;
    using heartbeat = keepAlive();
    using stop = deps.stopWatch.watch(turn.id);
    const ends = { cancelled: heartbeat.cancelled, stopped: stop.signal };
    const result = await resultOf(deps, largeResults, call, turn, ends);
    // Retry until the result is recorded: only this attempt knows it.
    if (result !== undefined) await untilBack(ends.cancelled, () => settleToolCall(deps, call, result));
  };
}

interface Ends {
  /** Aborted when the worker shuts down or the workflow cancels the call. */
  cancelled: AbortSignal;
  stopped: AbortSignal;
}

/** Undefined when the turn must stop: ending the turn settles the call. */
async function resultOf(
  deps: ChatDeps,
  largeResults: LargeResults,
  call: ToolCall,
  turn: Turn,
  ends: Ends,
): Promise<ResultChunk | undefined> {
  if (call.effect !== null) return succeededResult(call.id, call.effect.result);
  await loadContext(deps.database, turn);
  const found = await deps.tools.find(turn, call.step, call.toolName);
  // If an earlier run began, it may have had its effect, so a refusal of this run must say so.
  const refusal = (why: string) => failedResult(call.id, call.begunAt === null ? why : `${why} ${interrupted}`);
  if ('refused' in found) return refusal(found.refused);
  const { tool } = found;
  if (tool.runs === 'client') {
    return failedResult(call.id, deps.tools.faultsOf(tool, call.input) ?? `${tool.name} cannot be used here.`);
  }
  const refused = secretRefusal(tool, call.input, turn);
  if (refused !== undefined) return refusal(refused);
  // If the user might not use the tool, or it needed no approval, when the model called it, they have not been asked.
  if (needsApproval(tool, call.input) && call.decision !== 'approved') return refusal(notAllowed);
  // Everything that can fail without the tool happens first: a call that has not begun can be tried again.
  let input: unknown;
  let target: TargetOfCall | undefined;
  try {
    target = await targetOfCall(deps.tools, tool, call.input, turn);
    // The model called, and the user approved, the target that was recorded with the call.
    if (target?.identity !== call.target?.identity)
      return failedResult(call.id, call.begunAt === null ? targetChanged(tool) : interrupted);
    input = await inputOf(deps, tool, call, turn);
  } catch (error) {
    if (!(error instanceof DomainError) || isAway(error)) throw error;
    const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
    return refusal(redactor.text(error.message));
  }
  const isFirst = await chatModels(deps.database).ToolCall.begin(call.id);
  if (!isFirst && tool.afterCrash === 'never') return failedResult(call.id, interrupted);
  using large = largeResults.ticket(turn.spaceId);
  const prepared = { call, turn, tool, input, target: target?.identity ?? '', isRepeated: !isFirst };
  return await run(deps, prepared, large, ends);
}

interface Prepared {
  call: ToolCall;
  turn: Turn;
  tool: ServerTool;
  input: unknown;
  target: string;
  isRepeated: boolean;
}

async function run(
  deps: ChatDeps,
  { call, turn, tool, input, target, isRepeated }: Prepared,
  large: LargeResultTicket,
  { cancelled, stopped }: Ends,
): Promise<ResultChunk | undefined> {
  const { config, database, storage, logger } = deps;
  const onFailure = (error: unknown) =>
    logger.warn({ err: error, turnId: turn.id, toolCallId: call.id }, 'A large tool result could not be stored.');
  const store = { database, storage, limits: config.drive, onFailure };
  const late = AbortSignal.timeout(tool.timeoutMs);
  const signal = AbortSignal.any([cancelled, stopped, late, large.overdue]);
  const admitLarge = () => large.admit(signal);
  const isGivenUp = () => stopped.aborted || late.aborted || isStopByWorkflow(cancelled);
  const live = new CallOutput(deps, call, turn.spaceId);
  const { id: toolCallId } = call;
  const context: ToolContext = {
    turn,
    toolCallId,
    target,
    isRepeated,
    signal,
    isGivenUp,
    live,
    admitLarge,
    keepPicture: (picture) => keepPicture(store, turn, toolCallId, picture),
    noteControl: (control) => chatModels(database).ToolCall.noteControl(toolCallId, control),
    record,
  };
  let hasRun = false;
  try {
    // If a tool that ignores its signal tries to have its effect later, `record` refuses.
    const output = await untilAborted(callTool(), signal);
    hasRun = true;
    await live.end(signal);
    return await untilBack(AbortSignal.any([cancelled, stopped]), async () => {
      // Created only now, since the tool itself may have stored a secret.
      const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
      return succeededResult(call.id, await shorten(store, turn, call.id, redactor.json(output)));
    });
  } catch (thrown) {
    const isNothingDone = thrown instanceof NothingDone;
    const error = isNothingDone ? thrown.cause : thrown;
    if (stopped.aborted || isStopByWorkflow(cancelled)) return undefined;
    cancelled.throwIfAborted();
    if (!hasRun && late.aborted) return failedResult(call.id, tookTooLong(tool));
    if (!hasRun && large.overdue.aborted)
      return failedResult(call.id, 'The result is too large to arrive in time. Ask for less.');
    if (isAway(error)) {
      // Temporal repeats a call that may be repeated, until the unreachable service is back.
      if (tool.afterCrash === 'again') throw error;
      if (isNothingDone) return failedResult(call.id, notRun);
      return failedResult(call.id, hasRun ? resultLost : interrupted);
    }
    if (error instanceof DomainError) {
      const redactor = await untilBack(cancelled, () => deps.secrets.redactors.forSpace(turn.spaceId));
      return failedResult(call.id, redactor.text(error.message));
    }
    logger.error({ err: error, turnId: turn.id, toolCallId: call.id, toolName: tool.name }, 'A tool has failed.');
    return failedResult(call.id, 'The tool has failed.');
  }

  /**
   * A tool that must not run twice throws `NothingDone` as long as it has had no effect. It then runs again once the
   * unreachable service is back.
   */
  function callTool(): Promise<unknown> {
    const start = () => tool.run(input as never, context);
    if (tool.afterCrash === 'again') return start();
    return untilBack(signal, start, (error) => error instanceof NothingDone && isAway(error.cause));
  }

  async function record(tx: Parameters<ToolContext['record']>[0], result: unknown): Promise<void> {
    const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
    if (!(await chatModels(deps.database).ToolCall.recordEffect(call.id, redactor.json(result), tx)))
      throw new Error('The call has already ended.');
  }
}

async function inputOf(deps: ChatDeps, tool: ServerTool, call: ToolCall, turn: Turn): Promise<unknown> {
  const { dynamic } = deps.secrets;
  const input = await resolveSecretReferences(call.input, (ids) => dynamic.use(turn.spaceId, turn.userId, ids));
  const faults = deps.tools.faultsOf(tool, input);
  if (faults !== undefined) throw new DomainError('invalid', 'TOOL_INPUT_INVALID', faults);
  return input;
}
