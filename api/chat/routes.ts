import type { Request, Response } from 'express';
import { DomainError, notFound } from '../../base/errors.ts';
import { idPrefixes } from '../../base/ids.ts';
import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';
import { estimateTokens } from '../../integrations/chat/tokens.ts';
import type { SendIntent } from '../../models/chat/acceptMessage.ts';
import { decideToolCall } from '../../models/chat/answerToolCalls.ts';
import { attachFiles, needsOf } from '../../models/chat/attachments.ts';
import { requestStop } from '../../models/chat/endTurn.ts';
import type { StoredPart } from '../../models/chat/message.ts';
import { chatModels } from '../../models/chat/models.ts';
import { type ChatSettings, chatSettingsOf } from '../../models/chat/settings.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { UiChunk } from '../../models/chat/turnLog/chunks.ts';
import { readLastSeqs } from '../../models/chat/turnLog/tails.ts';
import { noteSeen } from '../../models/push/receipts.ts';
import { answer } from '../frame/answer.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, type Caller, callerOf, requireScope } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { bodyOf, pathOf, queryOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { streamTurn } from '../frame/sse.ts';
import { authorizeNamedThread, authorizeTurn, defaultSpaceOf, mayStillRead } from './authorizeThread.ts';
import { beginTurn } from './beginTurn.ts';
import { type ChatStreamBody, checkClientTools, hashMessage, readContext, readMessage } from './chatRequest.ts';
import { presentOneTurn } from './presentThread.ts';
import { replayMessage } from './replayMessage.ts';
import { isOnlyResults, takeToolResults } from './toolResults.ts';
import { turnTimeline } from './turnTimeline.ts';

/** Models, sending messages, and the streams of turns. Threads are in threadRoutes.ts. */
export function chatRoutes(deps: RouteDeps) {
  const { catalogue, launcher, logger } = deps;
  const { Turn } = chatModels(deps.database);
  const router = createRouter();

  router.get(['/chat/models', '/api/chat/models'], (_req, res) => {
    const { defaultModelId } = catalogue;
    answer<'listChatModels' | 'listModels'>(res, 200, { models: catalogue.list().map(presentModel), defaultModelId });
  });

  router.post('/chat/stream', async (req, res) => {
    const caller = callerOf(req);
    const body = bodyOf<'streamChat'>(req);
    const continued = await continueTurn(caller, body);
    if (continued !== undefined && isOnlyResults(body)) return stream(req, res, continued.turn, continued.after);
    const { intent, settings } = await readIntent(caller, body);
    const { turn, created, opening } = await beginTurn(deps, caller, intent, settings);
    if (!created && turn.logPurgedAt !== null) return replayMessage(deps.database, res, turn);
    stream(req, res, turn, 0, opening);
  });

  router.get('/chat/stream/:threadId/stream', async (req, res) => {
    const caller = callerOf(req);
    const { threadId } = pathOf<'resumeThreadStream'>(req);
    const { spaceId, after } = queryOf<'resumeThreadStream'>(req);
    const thread = await authorizeNamedThread(deps, caller, threadId, spaceId);
    // Nothing runs under a chat id without a message so far. `useChat` asks for it when a page is opened.
    if (thread === undefined && threadId.startsWith(`${idPrefixes.thread}_`)) throw notFound('thread');
    const activeTurnId = thread?.activeTurnId ?? null;
    const turn = activeTurnId === null ? null : await Turn.findByPk(activeTurnId);
    if (turn === null || turn.isTerminal) {
      res.status(204).end();
      return;
    }
    stream(req, res, turn, await positionIn(deps, turn, req, after));
  });

  router.get('/chat/turns/:turnId', async (req, res) => {
    const turn = await authorizeTurn(deps, callerOf(req), pathOf<'getTurn'>(req).turnId);
    answer<'getTurn'>(res, 200, await presentOneTurn(deps.database, turn));
  });

  router.get('/chat/turns/:turnId/timeline', async (req, res) => {
    const turn = await authorizeTurn(deps, callerOf(req), pathOf<'getTurnTimeline'>(req).turnId);
    answer<'getTurnTimeline'>(res, 200, await turnTimeline(deps, turn));
  });

  router.get('/chat/turns/:turnId/stream', async (req, res) => {
    const turn = await authorizeTurn(deps, callerOf(req), pathOf<'streamTurn'>(req).turnId);
    const after = await positionIn(deps, turn, req, queryOf<'streamTurn'>(req).after);
    if (turn.logPurgedAt === null) return stream(req, res, turn, after);
    if (after > 0) {
      const detail = 'This position of the turn’s log is no longer stored. Read the turn from its beginning.';
      throw new DomainError('gone', 'LOG_EXPIRED', detail);
    }
    await replayMessage(deps.database, res, turn);
  });

  router.post('/chat/turns/:turnId/stop', async (req, res) => {
    const turn = await authorizeTurn(deps, callerOf(req), pathOf<'stopTurn'>(req).turnId);
    const state = await requestStop(deps, turn.id);
    // A worker that is busy with the turn sees the flag in its row; the signal ends a turn that waits.
    if (state === 'stopping') void launcher.stopTurn(turn.id);
    await turn.reload();
    answer<'stopTurn'>(res, 200, await presentOneTurn(deps.database, turn));
  });

  /** Approves or denies a tool call. The turn's user decides, on any of their devices. */
  router.post('/chat/turns/:turnId/approvals/:toolCallId', async (req, res) => {
    const { turnId, toolCallId } = pathOf<'decideToolCall'>(req);
    const caller = callerOf(req);
    const turn = await authorizeTurn(deps, caller, turnId);
    const { approved } = bodyOf<'decideToolCall'>(req);
    await decideToolCall(deps, { turnId, toolCallId, approved, by: authorityOf(caller) });
    void deps.launcher.toolsAnswered(turnId);
    await turn.reload();
    answer<'decideToolCall'>(res, 200, await presentOneTurn(deps.database, turn));
  });

  /** Passes a body's tool results, if it has any, to the turn that waits for them. */
  async function continueTurn(caller: Caller, body: ChatStreamBody) {
    if (body.toolResults === undefined && body.messages?.at(-1)?.role !== 'assistant') return undefined;
    const name = body.threadId ?? body.id;
    const thread = name === undefined ? undefined : await authorizeNamedThread(deps, caller, name, body.spaceId);
    if (thread === undefined && body.threadId !== undefined) throw notFound('thread');
    return takeToolResults(deps, caller, body, thread?.id);
  }

  async function readIntent(
    caller: Caller,
    body: ChatStreamBody,
  ): Promise<{ intent: SendIntent; settings: ChatSettings }> {
    if (body.content === undefined && body.messages === undefined) {
      throw new DomainError('invalid', 'CONTENT_REQUIRED', 'Send one of `content`, `messages` and `toolResults`.');
    }
    checkClientTools(body);
    const name = body.threadId ?? body.id;
    const thread = name === undefined ? undefined : await authorizeNamedThread(deps, caller, name, body.spaceId);
    if (thread === undefined && body.threadId !== undefined) throw notFound('thread');
    if (thread !== undefined && body.spaceId !== undefined && thread.spaceId !== body.spaceId) {
      throw new DomainError('unprocessable', 'SPACE_MISMATCH', 'The thread does not belong to the space in `spaceId`.');
    }
    const spaceId = thread?.spaceId ?? body.spaceId ?? (await defaultSpaceOf(deps, caller));
    const mode = body.mode ?? 'ask';
    await authorizeSpace(deps, caller, spaceId, mode === 'work' ? 'editor' : 'viewer');
    const message = readMessage(body);
    const { parts, files, userMessageId, replaces } = message;
    const outboxHash = body.outboxItemId === undefined ? undefined : hashMessage(message, body);
    if (files.length > 0) requireScope(caller, 'drive:read', ', which attaching files takes');
    const [attached, settings] = await Promise.all([
      attachFiles(deps.database, { spaceId, userId: caller.userId }, files),
      chatSettingsOf(deps.database, spaceId),
    ]);
    parts.push(...attached);
    const { model, effort } = catalogue.resolve({
      modelId: body.modelId ?? spacesModel(body, settings.defaultModelId),
      autoModel: body.autoModel,
      effort: body.effort,
      needs: { mode, tools: mode === 'work', ...needsOf(parts), inputTokens: estimateTokens(charactersOf(parts)) },
    });
    const intent: SendIntent = {
      userId: caller.userId,
      spaceId,
      authority: authorityOf(caller),
      threadId: thread?.id,
      alias: thread === undefined ? body.id : undefined,
      parts,
      userMessageId,
      replaces,
      outboxItemId: body.outboxItemId,
      outboxHash,
      mode,
      modelId: model.id,
      effort: effort ?? null,
      notificationPriority: body.notification?.priority ?? 'default',
      onBusy: body.onBusy ?? 'queue',
      context: readContext(body),
      holdMs: launcher.headStartHoldMs(),
    };
    return { intent, settings };
  }

  /** The space's default model, for a message that names none. Ignored if the model no longer exists. */
  function spacesModel(body: ChatStreamBody, chosen: string | null): string | undefined {
    return body.autoModel !== true && chosen !== null && catalogue.find(chosen) !== undefined ? chosen : undefined;
  }

  function stream(req: Request, res: Response, turn: Turn, after: number, opening?: UiChunk[]): void {
    const caller = callerOf(req);
    streamTurn(res, {
      turnId: turn.id,
      threadId: turn.threadId,
      after,
      opening,
      feed: deps.feed,
      intervals: deps.config.chat.streams,
      logger,
      meters: deps.meters,
      closing: deps.closing,
      onRead(seq) {
        noteSeen(deps.database, turn, seq).catch((error: unknown) => {
          logger.warn({ err: error, turnId: turn.id }, 'A turn could not be marked as seen.');
        });
      },
      isAllowed: () => mayStillRead(deps, caller, turn),
    });
  }

  return router;
}

function charactersOf(parts: readonly StoredPart[]): number {
  return parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0);
}

/**
 * The chunk after which a stream begins: `after`, else Last-Event-ID, else the beginning. Throws 400 for a position
 * that no stream has had.
 */
async function positionIn(
  { database }: Pick<RouteDeps, 'database'>,
  turn: Turn,
  req: Request,
  after: number | undefined,
): Promise<number> {
  const header = req.get('last-event-id');
  const position =
    after ?? (header === undefined || header === '' ? 0 : /^\d{1,15}$/.test(header) ? Number(header) : -1);
  if (position === 0) return 0;
  if (Number.isInteger(position) && position > 0) {
    const lastSeqOf = await readLastSeqs(database, [turn]);
    if (position <= lastSeqOf(turn.id)) return position;
  }
  throw new DomainError('invalid', 'POSITION_UNKNOWN', 'This turn’s log has no such position.', {
    errors: [{ pointer: after === undefined ? 'Last-Event-ID' : 'after', detail: 'is not a position of this log' }],
  });
}

function presentModel(model: CatalogueModel) {
  return {
    id: model.id,
    name: model.name,
    provider: model.provider,
    pricingRates: model.pricingRates,
    effortOptions: model.effortOptions,
    ...(model.defaultEffort !== undefined && { defaultEffort: model.defaultEffort }),
    capabilities: model.capabilities,
  };
}
