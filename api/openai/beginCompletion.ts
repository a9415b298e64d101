import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import { firstOf } from '../../base/text.ts';
import type { SendIntent } from '../../models/chat/acceptMessage.ts';
import { findUndelivered } from '../../models/chat/completions.ts';
import { chatModels } from '../../models/chat/models.ts';
import { chatSettingsOf } from '../../models/chat/settings.ts';
import { authorizeTurn, defaultSpaceOf, findListedThread } from '../chat/authorizeThread.ts';
import { beginTurn } from '../chat/beginTurn.ts';
import { checkClientTools } from '../chat/chatRequest.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, type Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { clientToolsOf, completionRequestOf, type Place, readPlace } from './completionRequest.ts';
import { continueTurn } from './continueTurn.ts';
import { type CompletionBody, type Conversation, readConversation } from './conversation.ts';
import type { Telling } from './followTurn.ts';
import { modelUnknown, refused, refuseUnsupported } from './refusals.ts';
import { findContinued, hashOfConversation } from './sameConversation.ts';

const maxTitleLength = 80;
/** How long a repeated request finds the turn that it began. */
const retriedWithinMs = 60 * 60_000;
/** How long a thread that is not kept stays for its client to continue. */
const unkeptMs = 24 * 60 * 60_000;

/**
 * The turn that answers a request: a new one, the one that waits for the request's tool results, or the one that the
 * same request began before.
 */
export async function beginCompletion(
  deps: RouteDeps,
  req: Request,
  caller: Caller,
  body: CompletionBody,
): Promise<Telling> {
  refuseUnsupported(body);
  if (deps.catalogue.find(body.model) === undefined) throw modelUnknown();
  const conversation = readConversation(body);
  const place = readPlace(req, body, conversation);
  const request = hashOf([body, place]);
  // The hash includes the API key, so that a key does not get the answer of another one.
  const ofCaller = hashOf([caller.via === 'apiKey' ? caller.keyId : null, request.toString('hex')]);
  const retried = await findRetried(deps, req, caller, ofCaller);
  if (retried !== undefined) return retried;
  const thread =
    place.thread === undefined ? undefined : await findListedThread(deps, caller, place.thread, place.spaceId);
  if (thread !== undefined && place.spaceId !== undefined && thread.spaceId !== place.spaceId) {
    throw new DomainError('unprocessable', 'SPACE_MISMATCH', 'The thread does not belong to the named space.');
  }
  const continued = await continueTurn(deps, caller, conversation, thread?.id);
  if (conversation.news.length === 0) {
    if (continued !== undefined) return continued;
    throw refused('CONTENT_REQUIRED', '/messages', 'The last message must have the role user or tool.');
  }
  const spaceId = thread?.spaceId ?? continued?.turn.spaceId ?? place.spaceId ?? (await defaultSpaceOf(deps, caller));
  await authorizeSpace(deps, caller, spaceId, place.mode === 'work' ? 'editor' : 'viewer');
  const settings = await chatSettingsOf(deps.database, spaceId);
  const { history, news } = conversation;
  const intent: SendIntent = {
    ...readIntent(deps, body, conversation, place),
    userId: caller.userId,
    spaceId,
    authority: authorityOf(caller),
    threadId: thread?.id ?? continued?.turn.threadId,
    onBusy: await onBusy(deps, continued === undefined ? thread?.activeTurnId : undefined),
    completion: { request: ofCaller, conversation: hashOfConversation([...history, { role: 'user', parts: news }]) },
  };
  const key = req.get('idempotency-key');
  if (key !== undefined) Object.assign(intent, { outboxItemId: outboxItemOf(key), outboxHash: request });
  if (intent.threadId === undefined && place.thread === undefined && place.isKept) {
    const known = await findContinued(deps.database, { userId: caller.userId, spaceId, history });
    if (known !== undefined) Object.assign(intent, { threadId: known.threadId, behindOrdinal: known.ordinal });
  }
  const { turn, opening } = await beginTurn(deps, caller, intent, settings);
  return { turn, after: 0, opening };
}

/** The part of the intent that follows from the body alone. */
function readIntent(
  { catalogue, launcher }: RouteDeps,
  body: CompletionBody,
  { instructions, history, news: parts }: Conversation,
  { thread, ownToolsOnly, mode, isKept }: Place,
) {
  const clientTools = clientToolsOf(body);
  checkClientTools({ clientTools }, (index) => `/tools/${index}/function/name`);
  const completion = completionRequestOf(body, { instructions, ownToolsOnly });
  const { model, effort } = catalogue.resolve({ modelId: body.model, effort: body.reasoning_effort });
  return {
    // Ignored if the thread exists already.
    alias: thread,
    title: titleOf(parts),
    expiresAt: isKept ? null : new Date(Date.now() + unkeptMs),
    history,
    parts,
    mode,
    modelId: model.id,
    effort: effort ?? null,
    notificationPriority: 'default' as const,
    context: { completion, ...(clientTools && { clientTools }) },
    holdMs: launcher.headStartHoldMs(),
  };
}

/**
 * Finds the turn of a repeated request. OpenAI's clients mark a request that they repeat because its answer did not
 * come. The first request's turn goes on, and answers the repeated one.
 */
async function findRetried(
  deps: RouteDeps,
  req: Request,
  caller: Caller,
  request: Buffer,
): Promise<Telling | undefined> {
  const isRetry = Number(req.get('x-stainless-retry-count')) > 0;
  // An idempotency key finds the turn by itself.
  if (!isRetry || req.get('idempotency-key') !== undefined) return undefined;
  const since = new Date(Date.now() - retriedWithinMs);
  const turnId = await findUndelivered(deps.database, { userId: caller.userId, request, since });
  return turnId === undefined ? undefined : { turn: await authorizeTurn(deps, caller, turnId), after: 0 };
}

/** A client that continues without the requested results will not send them any more. */
async function onBusy({ database }: RouteDeps, activeTurnId: string | null | undefined): Promise<SendIntent['onBusy']> {
  const active = activeTurnId ? await chatModels(database).Turn.findByPk(activeTurnId) : null;
  return active?.status === 'waiting' ? 'interrupt' : 'queue';
}

/** Has its own prefix, since the user's messages to `/chat/stream` have outbox ids too. */
function outboxItemOf(idempotencyKey: string): string {
  return `v1:${createHash('sha256').update(idempotencyKey).digest('hex')}`;
}

function hashOf(asked: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(asked)).digest();
}

/** The message's first words: a model's title would cost more than many such requests. */
function titleOf(parts: SendIntent['parts']): string {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
  return firstOf(text.replace(/\s+/g, ' ').trim(), maxTitleLength).toWellFormed() || 'Untitled';
}
