import { DomainError } from '../../base/errors.ts';
import { firstOf } from '../../base/text.ts';
import { answerToolCalls, decideToolCall } from '../../models/chat/answerToolCalls.ts';
import { shorten } from '../../models/chat/largeResults.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { ToolCall } from '../../models/chat/toolCall.ts';
import { failedResult, type ResultChunk, succeededResult } from '../../models/chat/toolResult.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { Database } from '../../models/database/database.ts';
import { insufficientScope, lackingOf } from '../../models/identity/authority.ts';
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

/** An approval or denial, as AI SDK clients send it in their last message. */
interface ClientDecision {
  toolCallId: string;
  approved: boolean;
}

/** The turn that the results belong to, and the chunk after which the answer to them begins. */
export interface Continued {
  turn: Turn;
  after: number;
}

/**
 * Passes a body's tool results and approvals to their turn. Undefined if it has none. Each id in `toolResults` must
 * belong to a call of the caller's turns that a client was asked to answer (422 `TOOL_RESULT_UNKNOWN`). AI SDK clients
 * send their whole last message instead. In it, only calls count that wait, or have waited, for an answer.
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
  const { results, decisions } = named.length > 0 ? { results: named, decisions: [] } : answersOfMessages(body);
  if (results.length + decisions.length === 0) return undefined;
  const calls = await callsOf(deps.database, results, decisions);
  const turn = await turnOf(deps.database, calls, caller, threadId);
  const asked = new Set(calls.filter(({ turnId }) => turnId === turn?.id).map(({ id }) => id));
  const unknown = results.findIndex(({ toolCallId }) => !asked.has(toolCallId));
  if (named.length > 0 && (unknown >= 0 || turn === undefined)) throw unknownResult(unknown);
  if (turn === undefined) return undefined;
  await authorizeThread(deps, caller, turn.threadId);
  const lacking = lackingOf(authorityOf(caller), turn.scopes);
  if (lacking !== undefined) {
    throw insufficientScope(lacking, ', which this turn has, so this API key cannot continue the turn');
  }
  if (turn.mode === 'work') await authorizeSpace(deps, caller, turn.spaceId, 'editor');
  const chunks = await Promise.all(
    results.filter(({ toolCallId }) => asked.has(toolCallId)).map((result) => chunkOf(deps, turn, result)),
  );
  const by = authorityOf(caller);
  const decided: number[] = [];
  for (const decision of decisions.filter(({ toolCallId }) => asked.has(toolCallId))) {
    decided.push((await decideToolCall(deps, { turnId: turn.id, ...decision, by })).after);
  }
  const { after, isNew } = await answerToolCalls(deps, turn.id, chunks);
  if (isNew || decided.length > 0) {
    // The answer is stored: if the workflow misses the signal, the sweeper repeats it.
    void deps.launcher.toolsAnswered(turn.id);
  }
  return { turn, after: Math.max(after, ...decided) };
}

/** The calls that these answers belong to, if they wait, or have waited, for such an answer. */
async function callsOf(database: Database, results: ClientResult[], decisions: ClientDecision[]): Promise<ToolCall[]> {
  const { ToolCall } = chatModels(database);
  const idsOf = (answers: { toolCallId: string }[]) => answers.map(({ toolCallId }) => toolCallId);
  const [answered, decided] = await Promise.all([
    results.length === 0 ? [] : ToolCall.findAll({ where: { id: idsOf(results), waitsFor: 'client' } }),
    decisions.length === 0 ? [] : ToolCall.findAll({ where: { id: idsOf(decisions), waitsFor: 'approval' } }),
  ]);
  return [...answered, ...decided];
}

/** Whether the body contains nothing but results. */
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

/** The answers in the parts of the last message, if it is the assistant's. AI SDK clients send answers this way. */
function answersOfMessages(body: ChatStreamBody): { results: ClientResult[]; decisions: ClientDecision[] } {
  const results: ClientResult[] = [];
  const decisions: ClientDecision[] = [];
  const last = body.messages?.at(-1);
  if (last?.role !== 'assistant' || body.trigger === 'regenerate-message') return { results, decisions };
  for (const part of (last.parts ?? []) as Record<string, unknown>[]) {
    const isTool = part.type === 'dynamic-tool' || String(part.type).startsWith('tool-');
    if (!isTool || typeof part.toolCallId !== 'string') continue;
    const { toolCallId, state } = part;
    const said = { toolCallId, isTimeout: false };
    if (state === 'output-available') results.push({ ...said, output: part.output, isError: false });
    if (state === 'output-error') results.push({ ...said, output: part.errorText, isError: true });
    const approved = (part.approval as { approved?: unknown } | undefined)?.approved;
    if (state === 'approval-responded' && typeof approved === 'boolean') decisions.push({ toolCallId, approved });
  }
  return { results, decisions };
}

/** The result as the log stores it: without the space's secrets, and by reference if it is large. */
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
  const detail = 'No tool call with this id waits for a result from you in this thread.';
  return new DomainError('unprocessable', 'TOOL_RESULT_UNKNOWN', detail, {
    errors: [{ pointer: `/toolResults/${Math.max(0, index)}/toolUseId`, detail }],
  });
}
