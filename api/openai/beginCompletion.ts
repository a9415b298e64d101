import { createHash } from 'node:crypto';
import type { Request } from 'express';
import { DomainError } from '../../base/errors.ts';
import type { SendIntent } from '../../models/chat/acceptMessage.ts';
import { type Attendance, attendAgain } from '../../models/chat/attendance.ts';
import { findUndelivered } from '../../models/chat/completions.ts';
import { chatModels } from '../../models/chat/models.ts';
import { chatSettingsOf } from '../../models/chat/settings.ts';
import { authorizeTurn, defaultSpaceOf, findListedThread } from '../chat/authorizeThread.ts';
import { beginTurn } from '../chat/beginTurn.ts';
import { checkNamesDiffer } from '../chat/chatRequest.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { authorityOf, type Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { readAttendance } from './attendance.ts';
import { clientToolsOf, completionRequestOf, type Place, readPlace } from './completionRequest.ts';
import { type CompletionBody, type Conversation, readConversation, titleOf } from './conversation.ts';
import type { Telling } from './followTurn.ts';
import { findHandedBack } from './handedBack.ts';
import { areInline, keepFiles } from './keepFiles.ts';
import { modelUnknown, refused, refuseUnsupported } from './refusals.ts';
import { findContinued, hashOfConversation } from './sameConversation.ts';
import { withoutSecrets } from './withoutSecrets.ts';

/** How long a repeated request finds the turn that it began. */
const retriedWithinMs = 60 * 60_000;
/** How long a thread that is not kept stays for its client to continue. */
const unkeptMs = 24 * 60 * 60_000;

/** The turn that answers a request: a new one, or the one that the same request began before. */
export async function beginCompletion(
  deps: RouteDeps,
  req: Request,
  caller: Caller,
  body: CompletionBody,
): Promise<Telling> {
  refuseUnsupported(body);
  if (deps.catalogue.find(body.model) === undefined) throw modelUnknown(deps.catalogue, body.model);
  const conversation = readConversation(body);
  const place = readPlace(req, body, conversation);
  // Whatever finds an earlier turn includes the API key, so that a key does not get the answer of another one.
  const credential = caller.via === 'apiKey' ? caller.keyId : null;
  const request = hashOf([credential, body, place]);
  const outboxItemId = outboxItemOf(req, conversation, { credential, request });
  const attendance = readAttendance(req, body);
  const known = await findKnown(deps, req, caller, { request, outboxItemId, attendance });
  if (known !== undefined) return { turn: await authorizeTurn(deps, caller, known), after: 0, attendance };
  const thread =
    place.thread === undefined ? undefined : await findListedThread(deps, caller, place.thread, place.spaceId);
  if (thread !== undefined && place.spaceId !== undefined && thread.spaceId !== place.spaceId) {
    throw new DomainError('unprocessable', 'SPACE_MISMATCH', 'The thread does not belong to the named space.');
  }
  const { history, news, results } = conversation;
  if (news.length + results.length === 0) {
    throw refused('CONTENT_REQUIRED', '/messages', 'The last message must have the role user or tool.');
  }
  const continued = await findHandedBack(deps, caller, conversation, { place, named: thread });
  const spaceId = thread?.spaceId ?? continued?.thread.spaceId ?? place.spaceId ?? (await defaultSpaceOf(deps, caller));
  await authorizeSpace(deps, caller, spaceId, place.mode === 'work' ? 'editor' : 'viewer');
  const settings = await chatSettingsOf(deps.database, spaceId);
  const found =
    thread === undefined && continued === undefined && place.thread === undefined && place.isKept
      ? await findContinued(deps.database, { userId: caller.userId, spaceId, history })
      : undefined;
  const threadId = thread?.id ?? continued?.thread.id ?? found?.threadId;
  // A thread that has messages takes no others but the new one.
  const isNew = threadId === undefined || thread?.nextTurnOrdinal === 1;
  // Results whose calls are not in the request make sense only behind the turn that made the calls.
  const isWhole = results.every(({ hasCall }) => hasCall) && areInline(history);
  const kept = await keepFiles(deps, caller, { history: isNew ? history : [], news }, { spaceId, threadId });
  const asked = news.length === 0 ? history : [...history, { role: 'user' as const, parts: news }];
  const intent: SendIntent = {
    ...readIntent(deps, body, conversation, place),
    // Ignored if the thread exists already.
    title: titleOf(kept),
    userId: caller.userId,
    spaceId,
    authority: authorityOf(caller),
    threadId: threadId ?? kept.prepared,
    ...(kept.prepared !== undefined && { isPrepared: true }),
    behindOrdinal: continued?.turn.ordinal ?? found?.ordinal,
    ...withoutSecrets(await deps.secrets.redactors.forSpace(spaceId), {
      handedBack: continued?.handedBack,
      history: isNew ? kept.history : isWhole ? history : undefined,
    }),
    parts: kept.news,
    onBusy: await onBusy(deps, thread?.activeTurnId),
    completion: { request, conversation: hashOfConversation(asked), attendance },
    ...(outboxItemId !== undefined && { outboxItemId, outboxHash: request }),
  };
  refuseTooLarge(intent);
  const { turn, created, opening } = await beginTurn(deps, caller, intent, settings);
  if (!created) await attendAgain(deps.database, turn.id, attendance);
  return { turn, after: 0, opening, attendance };
}

/** In bytes, without files. No model reads as much, and no database takes much more at once. */
const maxMessagesBytes = 7_000_000;
const maxContextBytes = 4_000_000;

function refuseTooLarge({ history, parts, context }: SendIntent): void {
  if (Buffer.byteLength(JSON.stringify([history, parts])) > maxMessagesBytes) {
    throw refused('CONTEXT_TOO_LONG', '/messages', 'The texts of the messages are longer than any model can read.');
  }
  if (Buffer.byteLength(JSON.stringify(context)) > maxContextBytes) {
    const detail = `The tools and instructions take more than ${maxContextBytes / 1_000_000} MB.`;
    throw refused('REQUEST_TOO_LARGE', '/tools', detail);
  }
}

/** The part of the intent that follows from the body alone. */
function readIntent(
  { catalogue, launcher }: RouteDeps,
  body: CompletionBody,
  { instructions }: Conversation,
  { thread, ownToolsOnly, mode, isKept }: Place,
) {
  const clientTools = clientToolsOf(body);
  checkNamesDiffer({ clientTools }, (index) => `/tools/${index}/function/name`);
  const completion = completionRequestOf(body, { instructions, ownToolsOnly });
  const { model, effort } = catalogue.resolve({ modelId: body.model, effort: body.reasoning_effort });
  return {
    // Ignored if the thread exists already.
    alias: thread,
    expiresAt: isKept ? null : new Date(Date.now() + unkeptMs),
    mode,
    modelId: model.id,
    effort: effort ?? null,
    notificationPriority: 'default' as const,
    context: { completion, ...(clientTools && { clientTools }) },
    holdMs: launcher.headStartHoldMs(),
  };
}

/**
 * Finds the turn of a request that was sent before. OpenAI's clients mark a request that they repeat because its answer
 * did not come: the first request's turn goes on, and answers the repeated one. A request with tool results needs no
 * mark: its results count once, unless its turn had no answer.
 */
async function findKnown(
  { database }: RouteDeps,
  req: Request,
  { userId }: Caller,
  sent: { request: Buffer; outboxItemId: string | undefined; attendance: Attendance | undefined },
): Promise<string | undefined> {
  const { request, outboxItemId, attendance } = sent;
  const { Thread, Turn } = chatModels(database);
  if (outboxItemId?.startsWith(ofResults)) {
    const known = await Turn.byOutboxItem(userId, outboxItemId);
    if (known === null) return undefined;
    // From here on the turn does not stop for want of a client, so the following look at it decides.
    await attendAgain(database, known.id, attendance);
    await known.reload();
    const isVoid = known.status === 'failed' || known.stopRequestedAt !== null;
    if (!isVoid && (await Thread.open(known.threadId)) !== null) return known.id;
    await Turn.update({ outboxItemId: null }, { where: { id: known.id, outboxItemId } });
    return undefined;
  }
  const isRetry = Number(req.get('x-stainless-retry-count')) > 0;
  if (outboxItemId !== undefined) {
    const known = await Turn.byOutboxItem(userId, outboxItemId);
    if (known === null || known.outboxHash?.equals(request) !== true) return undefined;
    await attendAgain(database, known.id, attendance);
    return known.id;
  }
  if (!isRetry) return undefined;
  const repeated = { userId, request, since: new Date(Date.now() - retriedWithinMs) };
  const turnId = await findUndelivered(database, repeated);
  if (turnId === undefined) return undefined;
  await attendAgain(database, turnId, attendance);
  return findUndelivered(database, repeated);
}

/** A client that continues without the requested results will not send them any more. */
async function onBusy({ database }: RouteDeps, activeTurnId: string | null | undefined): Promise<SendIntent['onBusy']> {
  const active = activeTurnId ? await chatModels(database).Turn.findByPk(activeTurnId) : null;
  return active?.status === 'waiting' ? 'interrupt' : 'queue';
}

// Prefixes of our own, since the user's messages to `/chat/stream` have outbox ids too.
const ofKey = 'v1:';
const ofResults = 'v1t:';

/** The id by which the same request finds its turn: its idempotency key, or the hash of a request with tool results. */
function outboxItemOf(
  req: Request,
  { results }: Conversation,
  { credential, request }: { credential: string | null; request: Buffer },
): string | undefined {
  const key = req.get('idempotency-key');
  if (key !== undefined) return `${ofKey}${hashOf([credential, key]).toString('hex')}`;
  return results.length > 0 ? `${ofResults}${request.toString('hex')}` : undefined;
}

function hashOf(asked: unknown): Buffer {
  return createHash('sha256').update(JSON.stringify(asked)).digest();
}
