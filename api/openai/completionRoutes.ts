import { createHash } from 'node:crypto';
import type { Request, Response } from 'express';
import type { SendIntent } from '../../models/chat/acceptMessage.ts';
import { chatModels } from '../../models/chat/models.ts';
import { readChatSettings } from '../../models/chat/settings.ts';
import { DomainError } from '../../models/errors.ts';
import { noteSeen } from '../../models/push/receipts.ts';
import { firstOf } from '../../models/text.ts';
import { defaultSpaceOf, findListedThread } from '../chat/authorizeThread.ts';
import { beginTurn } from '../chat/beginTurn.ts';
import { checkClientTools } from '../chat/clientTools.ts';
import { takeToolResults } from '../chat/toolResults.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, type Caller, callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { ownToolsOf } from './answerState.ts';
import { clientToolsOf, completionRequestOf } from './completionRequest.ts';
import { type CompletionBody, type Conversation, readConversation } from './conversation.ts';
import { followTurn, recallTurn, type Telling } from './followTurn.ts';
import { readPlace } from './place.ts';
import { modelUnknown, refused, refuseUnsupported } from './refusals.ts';
import { streamCompletion } from './streamCompletion.ts';
import { type Answering, wholeCompletion } from './wholeCompletion.ts';

const maxTitleLength = 80;

/** `POST /v1/chat/completions`: a turn of a thread, told as OpenAI tells an answer. */
export function completionRoutes(deps: RouteDeps) {
  const { catalogue, database, launcher, logger } = deps;
  const { ModelCall, ToolCall, Turn } = chatModels(database);
  const router = createRouter();

  router.post('/v1/chat/completions', async (req, res, next) => {
    const telling = await begin(req, callerOf(req), bodyOf<'createChatCompletion'>(req));
    await tell(req, res, telling, next);
  });

  /** The turn that answers: a new one, or the one that waits for what the messages bring. */
  async function begin(req: Request, caller: Caller, body: CompletionBody): Promise<Telling> {
    refuseUnsupported(body);
    if (catalogue.find(body.model) === undefined) throw modelUnknown();
    const conversation = readConversation(body);
    const place = readPlace(req, body);
    const thread =
      place.thread === undefined ? undefined : await findListedThread(deps, caller, place.thread, place.spaceId);
    if (thread !== undefined && place.spaceId !== undefined && thread.spaceId !== place.spaceId) {
      throw new DomainError(
        'unprocessable',
        'SPACE_MISMATCH',
        'The thread belongs to another space than the named one.',
      );
    }
    const continued = await continueTurn(caller, conversation, thread?.id);
    if (conversation.news.length === 0) {
      if (continued !== undefined) return continued;
      throw refused('CONTENT_REQUIRED', '/messages', 'The last message must be a user’s, or the result of a tool.');
    }
    const active = continued === undefined && thread?.activeTurnId ? await Turn.findByPk(thread.activeTurnId) : null;
    const spaceId = thread?.spaceId ?? continued?.turn.spaceId ?? place.spaceId ?? (await defaultSpaceOf(deps, caller));
    await authorizeSpace(deps, caller, spaceId, place.mode === 'work' ? 'editor' : 'viewer');
    const clientTools = clientToolsOf(body);
    checkClientTools({ clientTools }, (index) => `/tools/${index}/function/name`);
    const settings = await readChatSettings(database, spaceId);
    const { news: parts, history, instructions } = conversation;
    const { model, effort } = catalogue.resolve({ modelId: body.model, effort: body.reasoning_effort });
    const key = req.get('idempotency-key');
    const { ownToolsOnly, mode } = place;
    const completion = completionRequestOf(body, { instructions, ownToolsOnly });
    const intent: SendIntent = {
      userId: caller.userId,
      spaceId,
      authority: authorityOf(caller),
      threadId: thread?.id ?? continued?.turn.threadId,
      alias: thread === undefined ? place.thread : undefined,
      title: titleOf(parts),
      history,
      parts,
      ...(key !== undefined && { outboxItemId: outboxItemOf(key), outboxHash: hashOf(body) }),
      mode,
      modelId: model.id,
      effort: effort ?? null,
      notificationPriority: 'default',
      // A client that goes on without the results that were asked of it does not bring them any more.
      onBusy: active?.status === 'waiting' ? 'interrupt' : 'queue',
      context: { completion, ...(clientTools && { clientTools }) },
      beginsAtOnce: launcher.givesHeadStarts(),
    };
    const { turn, opening } = await beginTurn(deps, caller, intent, settings);
    return { turn, after: 0, opening };
  }

  /** Passes the results of tools to the turn that waits for them. All of its calls must have one, as OpenAI wants it. */
  async function continueTurn(
    caller: Caller,
    { results, news }: Conversation,
    threadId: string | undefined,
  ): Promise<Telling | undefined> {
    if (results.length === 0) return undefined;
    await requireAllResults(caller, results);
    const toolResults = results.map(({ toolCallId, content }) => ({ toolUseId: toolCallId, content }));
    try {
      return await takeToolResults(deps, caller, { toolResults }, threadId);
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'TOOL_RESULT_UNKNOWN') throw error;
      // Where a user has said something since, they are a part of the history.
      if (news.length > 0) return undefined;
      throw refused(error.code, `/messages/${results[0]?.index}/tool_call_id`, error.message);
    }
  }

  async function requireAllResults(caller: Caller, results: Conversation['results']): Promise<void> {
    const call = await ToolCall.findByPk(results[0]?.toolCallId ?? '');
    const turn = call && (await Turn.findByPk(call.turnId));
    if (turn?.userId !== caller.userId) return;
    const given = new Set(results.map(({ toolCallId }) => toolCallId));
    const missing = (await ToolCall.openOf([turn.id])).filter(
      ({ id, waitsFor }) => waitsFor === 'client' && !given.has(id),
    );
    if (missing.length === 0) return;
    const detail = `Each tool call needs a result. There is none for ${missing.map(({ id }) => id).join(', ')}.`;
    throw refused('TOOL_RESULT_MISSING', '/messages', detail);
  }

  async function tell(req: Request, res: Response, telling: Telling, fail: (error: unknown) => void): Promise<void> {
    const { turn, after } = telling;
    const { stream, stream_options: options } = bodyOf<'createChatCompletion'>(req);
    const answering: Answering = {
      telling,
      ownTools: await ownToolsOf(database, turn),
      usage: () => ModelCall.usageOf(turn.id, { afterSeq: after }),
      fail,
      onRead(seq) {
        noteSeen(database, turn, seq).catch((error: unknown) => {
          logger.warn({ err: error, turnId: turn.id }, 'It could not be noted that a turn was seen.');
        });
      },
    };
    res.set({ 'x-turn-id': turn.id, 'x-thread-id': turn.threadId });
    const listener =
      stream === true
        ? streamCompletion(res, answering, { deps, withUsage: options?.include_usage === true })
        : wholeCompletion(res, answering);
    const isPurged = turn.isTerminal && turn.logPurgedAt !== null;
    if (!isPurged) followTurn(deps, req, res, telling, listener);
    else await recallTurn(deps, telling, listener);
  }

  return router;
}

/** In a form of its own, for the same person's messages to `/chat/stream` have ids as well. */
function outboxItemOf(idempotencyKey: string): string {
  return `v1:${createHash('sha256').update(idempotencyKey).digest('hex')}`;
}

function hashOf(body: CompletionBody): Buffer {
  return createHash('sha256').update(JSON.stringify(body)).digest();
}

/** The first words; asking a model for a title would cost more than many such requests do. */
function titleOf(parts: SendIntent['parts']): string {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
  return firstOf(text.replace(/\s+/g, ' ').trim(), maxTitleLength).toWellFormed() || 'Untitled';
}
