import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { chatModels } from '../../models/chat/models.ts';
import { type ParkedCalls, parkToolCalls } from '../../models/chat/parkToolCalls.ts';
import type { TargetOfCall, ToolCall, WaitsFor } from '../../models/chat/toolCall.ts';
import { failedResult, type ResultChunk, statusOf, succeededResult } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { WriterFencedError } from '../../models/chat/turnLog/entry.ts';
import { transaction } from '../../models/database/database.ts';
import { isAway } from '../../models/database/unavailable.ts';
import type { ToolRegistry } from '../tools/registry.ts';
import { needsApproval, type ServerTool, scopesOf, secretRefusal, type Tool } from '../tools/tool.ts';
import type { MadeToolCall } from './chunkMapper.ts';
import type { ChatDeps } from './deps.ts';
import { type Audience, audienceOf, createEndTurn } from './endTurn.ts';

type Registry = Pick<ToolRegistry, 'faultsOf'>;

interface Offer {
  /** The tools that the model was offered, by name. */
  tools: ReadonlyMap<string, Tool>;
  registry: Registry;
  /** The calls' targets by call id, as `targetsOf` found them. */
  targets: ReadonlyMap<string, TargetOfCall>;
  /** The longest time that a client or a person may take. */
  maxWaitMs: number;
}

/** Records a step's calls in the order in which the model made them, and who has to answer each of them. */
export async function recordToolCalls(
  tx: Transaction,
  turn: Turn,
  step: number,
  made: readonly MadeToolCall[],
  { tools, registry, targets, maxWaitMs }: Offer,
): Promise<ToolCall[]> {
  const now = new Date();
  const rows = made.map((call) => {
    const tool = tools.get(call.toolName);
    const wait = waitOf(call, tool, registry, turn);
    const deadline = wait.for === 'nothing' ? null : new Date(now.getTime() + Math.min(wait.forMs, maxWaitMs));
    return {
      id: call.id,
      turnId: turn.id,
      step,
      toolName: call.toolName,
      input: call.input ?? {},
      scopes: tool && scopesOf(tool, call.input),
      target: targets.get(call.id) ?? null,
      // The stream reports that the input is not valid JSON, so there is nothing to run.
      status: call.inputError === undefined ? 'pending' : 'failed',
      waitsFor: wait.for,
      deadlineAt: deadline,
      createdAt: now,
      endedAt: call.inputError === undefined ? null : now,
    };
  });
  return rows.length === 0 ? [] : chatModels(tx).ToolCall.bulkCreate(rows, { transaction: tx });
}

/** The current targets of a step's calls, by call id. Calls without a target and invalid calls are left out. */
export async function targetsOf(
  turn: Turn,
  made: readonly MadeToolCall[],
  { tools, registry }: Pick<Offer, 'tools' | 'registry'>,
): Promise<Map<string, TargetOfCall>> {
  const targets = new Map<string, TargetOfCall>();
  for (const { id, toolName, input = {}, inputError } of made) {
    const tool = tools.get(toolName);
    if (tool?.runs !== 'server' || inputError !== undefined || secretRefusal(tool, input, turn) !== undefined) continue;
    try {
      const target = await targetOfCall(registry, tool, input, turn);
      if (target !== undefined) targets.set(id, target);
    } catch (error) {
      // Ignored: the run fails in the same way and tells the model.
      if (!(error instanceof DomainError) || isAway(error)) throw error;
    }
  }
  return targets;
}

/** The current target of a call; undefined if its tool names none or if the input is invalid. */
export async function targetOfCall(
  registry: Registry,
  tool: ServerTool,
  input: unknown,
  turn: Turn,
): Promise<TargetOfCall | undefined> {
  if (tool.targetOf === undefined) return undefined;
  const given = structuredClone(input);
  return registry.faultsOf(tool, given) === undefined ? tool.targetOf(given as never, turn) : undefined;
}

/** An invalid call is not shown for approval: it fails when it is run. */
function waitOf(
  { input, inputError }: MadeToolCall,
  tool: Tool | undefined,
  registry: Registry,
  turn: Turn,
): { for: WaitsFor; forMs: number } {
  const nothing = { for: 'nothing', forMs: 0 } as const;
  if (inputError !== undefined || tool === undefined) return nothing;
  if (tool.runs === 'client') {
    const isRight = registry.faultsOf(tool, structuredClone(input)) === undefined;
    return isRight ? { for: 'client', forMs: tool.deadlineMs } : nothing;
  }
  if (secretRefusal(tool, input, turn) !== undefined) return nothing;
  return needsApproval(tool, input) ? { for: 'approval', forMs: Number.POSITIVE_INFINITY } : nothing;
}

/** Puts a call's result into its turn's log, once: the row's change and the chunk are one commit. */
export async function settleToolCall(
  deps: Pick<ChatDeps, 'database' | 'turnLog'>,
  { id, turnId }: Pick<ToolCall, 'id' | 'turnId'>,
  result: ResultChunk,
): Promise<void> {
  const { database, turnLog } = deps;
  const { ToolCall, Turn } = chatModels(database);
  try {
    const segment = await transaction(database, async (tx) => {
      // The turn's row is always locked first.
      await Turn.lock(turnId, tx);
      const call = await ToolCall.findByPk(id, { transaction: tx, lock: tx.LOCK.UPDATE });
      // An earlier run that was given up may have had its effect after all.
      const said = call?.effect ? succeededResult(id, call.effect.result) : result;
      if (!(await ToolCall.settle(id, statusOf(said), tx))) throw new AlreadySettled();
      return turnLog.appendIn(tx, turnId, [said]);
    });
    turnLog.announce(segment);
  } catch (error) {
    // Another run of the same call was faster, or the turn has ended. Either is fine.
    if (!(error instanceof AlreadySettled) && !(error instanceof WriterFencedError)) throw error;
  }
}

class AlreadySettled extends Error {}

/** The texts that a model reads for a call without a result. */
export const interrupted =
  'The tool was interrupted while it ran. It is unknown whether it had an effect: check before you try again.';
export const notRun = 'The tool could not be run, and nothing was done. Try again later.';
export const resultLost = 'The tool was run, but its result could not be stored.';
export const notAllowed = 'The user has to allow this first. Call the tool again.';

export function targetChanged({ name }: { name: string }): string {
  return `TOOL_CHANGED: ${name} no longer leads to the same server or tool as when the call was made, so nothing was sent. Call the tool again if the call is still right.`;
}

/** If the tool must not run twice, the text warns that its effect may have happened or may still happen. */
export function tookTooLong({ timeoutMs, afterCrash }: { timeoutMs: number; afterCrash: 'again' | 'never' }): string {
  const why = `The tool took longer than ${timeoutMs / 1_000} seconds.`;
  return afterCrash === 'again' ? why : `${why} It is unknown whether it had an effect: check before you try again.`;
}

const handedOver = { status: 'completed', finishReason: 'tool-calls' } as const;

/** Activities for calls that cannot run at once. */
export function createParking(deps: ChatDeps) {
  const { Turn } = chatModels(deps.database);
  const endTurn = createEndTurn(deps);
  /**
   * Whether a call can be repeated safely: its tool only reads, or commits its effect together with its record, which
   * is refused from here on.
   */
  const runsAgain = async (call: ToolCall): Promise<boolean> => {
    const turn = await Turn.findByPk(call.turnId);
    const found = turn === null ? undefined : await deps.tools.find(turn, call.step, call.toolName);
    return found !== undefined && 'tool' in found && found.tool.runs === 'server' && found.tool.afterCrash === 'again';
  };
  return {
    /**
     * Checks the turn's waiting calls. If the turn begins to wait, also returns the devices to notify. A turn of
     * OpenAI's API ends instead.
     */
    async parkToolCalls(input: { turnId: string; isIdle: boolean }): Promise<ParkedCalls & { audience?: Audience }> {
      const parked = await parkToolCalls(deps, input);
      if (parked.isHandedOver) await endTurn({ turnId: input.turnId, end: handedOver });
      const turn = parked.beganToWait ? await Turn.findByPk(input.turnId) : null;
      const audience = turn === null ? undefined : await audienceOf(deps, turn);
      return { ...parked, ...(audience && { audience }) };
    },

    /** Gives up a call that no worker could finish. */
    async abandonToolCall({ turnId, toolCallId }: { turnId: string; toolCallId: string }): Promise<void> {
      const call = await chatModels(deps.database).ToolCall.findByPk(toolCallId);
      const isKnown = call === null || call.begunAt === null || (await runsAgain(call));
      const result = failedResult(toolCallId, isKnown ? notRun : interrupted);
      await settleToolCall(deps, { id: toolCallId, turnId }, result);
    },
  };
}
