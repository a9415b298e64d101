import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { insert, insertInstance } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type CompletionHashes, insertCompletion } from './completions.ts';
import { type ImportedMessage, importHistory } from './importHistory.ts';
import { type StoredPart, userPosition } from './message.ts';
import { chatModels } from './models.ts';
import { findReplaced, replaceFrom } from './replaceMessages.ts';
import type { Thread } from './thread.ts';
import type { NotificationPriority, Turn, TurnMode } from './turn.ts';
import type { UiChunk } from './turnLog/chunks.ts';
import { encodeChunks } from './turnLog/entry.ts';

const firstEpoch = 1;
/** How many turns of one thread may wait behind the running one. */
const maxQueuedTurns = 50;

/** A message to accept, already checked and authorized. */
export interface SendIntent {
  userId: string;
  spaceId: string;
  /** The scopes of the sending credential: the turn may never do more. */
  authority: Authority;
  /** An existing thread of the user's; absent makes one, under `alias` when the client named it. */
  threadId?: string;
  alias?: string;
  /** Of a thread that is made for the message. */
  title?: string;
  expiresAt?: Date | null;
  /** The ordinal of the thread's last turn: where another has come since, the message makes a thread of its own. */
  behindOrdinal?: number;
  /** By what a request of OpenAI's API finds the turn again. */
  completion?: CompletionHashes;
  /** What was said before, for a thread that has no messages yet. */
  history?: readonly ImportedMessage[];
  parts: StoredPart[];
  userMessageId?: string;
  outboxItemId?: string;
  /** The hash of what the outbox item says. The same id with another hash is refused. */
  outboxHash?: Buffer;
  mode: TurnMode;
  modelId: string;
  effort: string | null;
  notificationPriority: NotificationPriority;
  onBusy: 'queue' | 'reject' | 'interrupt';
  /**
   * The message replaces the one with `userMessageId` and everything after it: that one is answered again unchanged
   * (without an id, the thread's last), or edited to this text. A running answer to it is stopped.
   */
  replaces?: 'again' | 'edited';
  /** The sender's device: panes, snapshot. Stored unchanged, with the turn. */
  context?: Record<string, unknown>;
  /**
   * The caller takes the new turn's first step at once: it has the first epoch, and need not ask for it. For so many
   * milliseconds nobody else takes the step, unless the caller says before that it is still there.
   */
  holdMs?: number;
}

export interface AcceptedMessage {
  turn: Turn;
  /** False when the same message was accepted before: the caller attaches to its turn. */
  created: boolean;
  /** The outbox item's id is known, but its message was another one: refused, once the caller may see that turn. */
  differs?: true;
  /** The first chunks of the new turn's log. */
  opening?: UiChunk[];
  /** The turn that has to stop for this one to begin. */
  interrupted?: string;
}

/**
 * Writes the intent: thread, user message, turn and the first chunks of its log, in one transaction. The same outbox
 * item, or the same message id in a thread, returns the same turn as before, so that no message is answered twice.
 */
export async function acceptMessage(database: Database, intent: SendIntent, admit?: Admit): Promise<AcceptedMessage> {
  // Another request may write the same outbox item, alias or message in the meantime: the retry finds it.
  return transaction(database, (tx) => acceptMessageIn(tx, intent, admit), { retryDuplicates: true });
}

/** Called only for a new turn, once it is certain that this message has none; rejects to refuse it. */
export type Admit = (tx: Transaction, turn: Turn) => Promise<void>;

/** The same as a part of more that happens at once. */
export async function acceptMessageIn(
  tx: Transaction,
  intent: SendIntent,
  admit: Admit | undefined,
): Promise<AcceptedMessage> {
  const { Turn } = chatModels(tx);
  if (intent.outboxItemId !== undefined) {
    const known = await Turn.byOutboxItem(intent.userId, intent.outboxItemId, tx);
    if (known !== null) {
      return {
        turn: known,
        created: false,
        ...(isDifferent(known.outboxHash, intent.outboxHash) && { differs: true }),
      };
    }
  }
  const thread = await findOrMakeThread(tx, intent);
  const repeated = await findRepeated(tx, thread, intent);
  if (repeated !== undefined) return { turn: repeated, created: false };

  await requireLivingSpace(tx, thread.spaceId);
  const now = new Date();
  const busy = thread.activeTurnId !== null;
  if (busy) await refuseIfTooBusy(tx, thread, intent);
  const turnId = newId('turn');
  if (thread.nextTurnOrdinal === 1) await importHistory(tx, thread, intent.history ?? [], now);
  const ordinal = thread.takeOrdinal();
  const holdMs = busy ? undefined : intent.holdMs;
  const beginsAtOnce = holdMs !== undefined;
  const placed = await placeUserMessage(tx, thread, intent, { turnId, ordinal, now });
  const { userMessageId } = placed;
  const turn = Turn.build({
    id: turnId,
    threadId: thread.id,
    spaceId: thread.spaceId,
    userId: thread.userId,
    ordinal,
    status: busy ? 'queued' : 'running',
    terminal: 0,
    writerEpoch: beginsAtOnce ? firstEpoch : 0,
    outboxItemId: intent.outboxItemId ?? null,
    outboxHash: intent.outboxHash ?? null,
    userMessageId,
    assistantMessageId: newId('message'),
    mode: intent.mode,
    modelId: intent.modelId,
    effort: intent.effort,
    scopes: intent.authority.scopes,
    apiKeyId: intent.authority.apiKeyId,
    notificationPriority: intent.notificationPriority,
    createdAt: now,
    startedAt: busy ? null : now,
  });
  const opening: UiChunk[] = [
    {
      type: 'start',
      messageId: turn.assistantMessageId,
      messageMetadata: { turnId, threadId: thread.id, modelId: turn.modelId },
    },
    turn.statusChunk(turn.status),
  ];
  const firstSeq = opening.length + 1;
  if (beginsAtOnce) opening.push({ type: 'start-step' });
  turn.nextSeq = opening.length + 1;
  turn.context = intent.context ?? null;
  await insertInstance(tx, turn);
  if (beginsAtOnce) {
    await chatModels(tx).ModelCall.begin(tx, { turnId, step: 0, modelId: turn.modelId, firstSeq, holdMs });
  }
  await insertOpening(tx, turnId, opening, intent.context);
  if (intent.completion !== undefined) await insertCompletion(tx, turn, intent.completion);
  thread.set({ activeTurnId: thread.activeTurnId ?? turnId, updatedAt: now });
  if (thread.isNewRecord) await insertInstance(tx, thread);
  // Saves everything that has changed, the taken ordinal too: `update` would save only what it is given.
  else await thread.save({ transaction: tx });
  const interrupted = placed.interrupted ?? (busy ? await interrupt(tx, thread, intent, now) : undefined);
  // Last, since it locks a row of the whole space.
  await admit?.(tx, turn);
  return { turn, created: true, opening, ...(interrupted !== undefined && { interrupted }) };
}

/** A turn without a hash is older than the hashes: its message is taken to be the same. */
function isDifferent(kept: Buffer | null, sent: Buffer | undefined): boolean {
  return kept !== null && sent !== undefined && !kept.equals(sent);
}

export function outboxItemReused(): DomainError {
  const detail = 'A different message was already sent with this outboxItemId.';
  return new DomainError('unprocessable', 'OUTBOX_ITEM_REUSED', detail, {
    errors: [{ pointer: '/outboxItemId', detail: 'belongs to a different message' }],
  });
}

async function findOrMakeThread(tx: Transaction, intent: SendIntent): Promise<Thread> {
  const { Thread, ThreadAlias } = chatModels(tx);
  const { userId, spaceId, alias, title, expiresAt, threadId, behindOrdinal } = intent;
  const named = threadId === undefined ? undefined : await Thread.lock(threadId, tx);
  const isLater = behindOrdinal !== undefined && named?.nextTurnOrdinal !== behindOrdinal + 1;
  if (named !== undefined && !isLater) return named;
  if (alias === undefined) return Thread.prepare({ userId, spaceId, title, expiresAt });
  const known = await ThreadAlias.findOne({ where: { userId, spaceId, alias }, transaction: tx });
  if (known !== null) return Thread.lock(known.threadId, tx);
  const thread = Thread.prepare({ userId, spaceId, title, expiresAt });
  await ThreadAlias.create({ userId, spaceId, alias, threadId: thread.id }, { transaction: tx });
  return thread;
}

async function findRepeated(tx: Transaction, thread: Thread, intent: SendIntent): Promise<Turn | undefined> {
  if (intent.userMessageId === undefined || intent.replaces !== undefined || thread.isNewRecord) return undefined;
  const { Message, Turn } = chatModels(tx);
  const message = await Message.find(thread.id, intent.userMessageId, tx);
  if (message === null) return undefined;
  if (message.role !== 'user') {
    throw new DomainError('conflict', 'MESSAGE_ID_TAKEN', 'Another message of this thread has this userMessageId.');
  }
  return (await Turn.findByPk(message.turnId, { transaction: tx })) ?? undefined;
}

async function refuseIfTooBusy(tx: Transaction, thread: Thread, intent: SendIntent): Promise<void> {
  if (intent.onBusy === 'reject') {
    throw new DomainError('conflict', 'THREAD_BUSY', 'A turn of this thread is running; send again when it has ended.');
  }
  const { activeTurnId } = thread;
  if (activeTurnId !== null && (await chatModels(tx).Turn.countQueued(thread.id, activeTurnId, tx)) >= maxQueuedTurns) {
    throw new DomainError('conflict', 'QUEUE_FULL', `${maxQueuedTurns} messages of this thread are waiting already.`);
  }
}

/** Stores the new message, or replaces an earlier one with it. */
async function placeUserMessage(
  tx: Transaction,
  thread: Thread,
  intent: SendIntent,
  place: { turnId: string; ordinal: number; now: Date },
): Promise<{ userMessageId: string; interrupted?: string }> {
  const replaced = intent.replaces && (await findReplaced(tx, thread, intent));
  if (replaced) {
    const interrupted = await replaceFrom(tx, thread, replaced, {
      ...place,
      ...(intent.replaces === 'edited' && { parts: intent.parts }),
    });
    return { userMessageId: replaced.id, interrupted };
  }
  const id = intent.userMessageId ?? newId('message');
  const message = chatModels(tx).Message.build({
    threadId: thread.id,
    turnOrdinal: place.ordinal,
    position: userPosition,
    id,
    turnId: place.turnId,
    role: 'user',
    parts: intent.parts,
    createdAt: place.now,
  });
  await insertInstance(tx, message);
  return { userMessageId: id };
}

async function insertOpening(
  tx: Transaction,
  turnId: string,
  chunks: UiChunk[],
  context: Record<string, unknown> | undefined,
): Promise<void> {
  await insert(tx, 'turn_segments', {
    turn_id: turnId,
    first_seq: 1,
    last_seq: chunks.length,
    writer_epoch: 0,
    chunks: encodeChunks(chunks),
  });
  if (context === undefined || Object.keys(context).length === 0) return;
  await insert(tx, 'turn_contexts', { turn_id: turnId, context: JSON.stringify(context) });
}

async function interrupt(tx: Transaction, thread: Thread, intent: SendIntent, now: Date): Promise<string | undefined> {
  if (intent.onBusy !== 'interrupt' || thread.activeTurnId === null) return undefined;
  await chatModels(tx).Turn.update(
    { stopRequestedAt: now },
    { where: { id: thread.activeTurnId, terminal: 0, stopRequestedAt: null }, transaction: tx },
  );
  return thread.activeTurnId;
}
