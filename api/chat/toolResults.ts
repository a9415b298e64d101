import { answerToolCalls } from '../../models/chat/answerToolCalls.ts';
import { shorten } from '../../models/chat/largeResults.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { failedResult, type ResultChunk, succeededResult } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Database } from '../../models/database.ts';
import { DomainError } from '../../models/errors.ts';
import { insufficientScope, lackingOf } from '../../models/identity/authority.ts';
import { firstOf } from '../../models/text.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, type Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { authorizeThread } from './authorizeThread.ts';
import type { ChatStreamBody } from './chatRequest.ts';

/** A client's result of one tool call, from either dialect. */
interface ClientResult {
  toolCallId: string;
  output: unknown;
  isError: boolean;
  isTimeout: boolean;
}

/** The turn that the results belong to, and after which chunk the answer to them begins. */
export interface Continued {
  turn: Turn;
  after: number;
}

/**
 * Passes a body's tool results to their turn. Undefined when there are none. In spec.md's dialect each id must belong
 * to a call that a client was asked to answer, in one of the caller's turns (422 `TOOL_RESULT_UNKNOWN`); AI SDK clients
 * send all results of their last message, of which only those that we wait for, or have received, count.
 */
export async function takeToolResults(
  deps: RouteDeps,
  caller: Caller,
  body: ChatStreamBody,
  threadId: string | undefined,
): Promise<Continued | undefined> {
  const named = (body.toolResults ?? []).map(({ toolUseId, content, isError, isTimeout }) => ({
    toolCallId: toolUseId,
    output: content,
    isError: isError ?? false,
    isTimeout: isTimeout ?? false,
  }));
  const results = named.length > 0 ? named : resultsOfMessages(body);
  if (results.length === 0) return undefined;
  const calls = await chatModels(deps.database).ToolCall.findAll({
    where: { id: results.map(({ toolCallId }) => toolCallId), waitsFor: 'client' },
  });
  const turn = await turnOf(deps.database, calls, caller, threadId);
  const asked = new Set(calls.filter(({ turnId }) => turnId === turn?.id).map(({ id }) => id));
  const unknown = results.findIndex(({ toolCallId }) => !asked.has(toolCallId));
  if (named.length > 0 && (unknown >= 0 || turn === undefined)) throw unknownResult(unknown);
  if (turn === undefined) return undefined;
  await authorizeThread(deps, caller, turn.threadId);
  const lacking = lackingOf(authorityOf(caller), turn.scopes);
  if (lacking !== undefined) throw insufficientScope(lacking, ', which this turn has, so it cannot take it further');
  if (turn.mode === 'work') await authorizeSpace(deps, caller, turn.spaceId, 'editor');
  const chunks = await Promise.all(
    results.filter(({ toolCallId }) => asked.has(toolCallId)).map((result) => chunkOf(deps, turn, result)),
  );
  const { after, isNew } = await answerToolCalls(deps, turn.id, chunks);
  if (isNew) {
    // The answer is stored: if the workflow misses the signal, the sweeper repeats it.
    void deps.launcher.toolsAnswered(turn.id);
  }
  return { turn, after };
}

/** Whether the body has nothing besides its results. */
export function isOnlyResults(body: ChatStreamBody): boolean {
  return body.content === undefined && (body.messages === undefined || body.messages.at(-1)?.role === 'assistant');
}

async function turnOf(
  database: Database,
  calls: readonly ToolCall[],
  caller: Caller,
  threadId: string | undefined,
): Promise<Turn | undefined> {
  const [turnId] = new Set(calls.map((call) => call.turnId));
  const turn = turnId === undefined ? null : await chatModels(database).Turn.findByPk(turnId);
  if (turn === null || turn.userId !== caller.userId) return undefined;
  return threadId === undefined || turn.threadId === threadId ? turn : undefined;
}

/** The results in the parts of the last message, if that is the assistant's: how AI SDK clients answer. */
function resultsOfMessages(body: ChatStreamBody): ClientResult[] {
  const last = body.messages?.at(-1);
  if (last?.role !== 'assistant' || body.trigger === 'regenerate-message') return [];
  return ((last.parts ?? []) as Record<string, unknown>[]).flatMap((part): ClientResult[] => {
    const isTool = part.type === 'dynamic-tool' || String(part.type).startsWith('tool-');
    if (!isTool || typeof part.toolCallId !== 'string') return [];
    const { toolCallId, state } = part;
    if (state === 'output-available') return [{ toolCallId, output: part.output, isError: false, isTimeout: false }];
    if (state === 'output-error') return [{ toolCallId, output: part.errorText, isError: true, isTimeout: false }];
    return [];
  });
}

/** As the log stores it: without the space's secrets, and by reference when it is large. */
async function chunkOf(deps: RouteDeps, turn: Turn, result: ClientResult): Promise<ResultChunk> {
  const { toolCallId, isError, isTimeout } = result;
  const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
  const output = redactor.json(result.output);
  if (isTimeout || isError) {
    const said = typeof output === 'string' ? firstOf(output, maxErrorCharacters) : '';
    const silent = isTimeout ? 'The client did not answer in time.' : 'The tool has failed on the client.';
    return failedResult(toolCallId, said === '' ? silent : said);
  }
  const { config, database, storage, logger } = deps;
  const onFailure = (error: unknown) =>
    logger.warn({ err: error, turnId: turn.id, toolCallId }, 'A large tool result could not be stored.');
  const store = { database, storage, limits: config.drive, onFailure };
  return succeededResult(toolCallId, await shorten(store, turn, toolCallId, output));
}

const maxErrorCharacters = 10_000;

function unknownResult(index: number): DomainError {
  const detail = 'No call of this id, in this thread, waits for a result of yours.';
  return new DomainError('unprocessable', 'TOOL_RESULT_UNKNOWN', detail, {
    errors: [{ pointer: `/toolResults/${Math.max(0, index)}/toolUseId`, detail }],
  });
}
