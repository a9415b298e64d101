import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { insert, insertInstance } from '../database/sql.ts';
import type { Authority } from '../identity/authority.ts';
import { type CompletionRecord, insertCompletion } from './completions.ts';
import { type HandedBack, takeBack, threadGoneOn } from './handOver.ts';
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
  /** An existing thread of the user's. Without it a thread is created, with `alias` if the client named it. */
  threadId?: string;
  alias?: string;
  /** The thread was made for the files of this message (`prepareThread`), and becomes like any other with it. */
  isPrepared?: true;
  /** The title of a thread that is created for the message. */
  title?: string;
  expiresAt?: Date | null;
  /**
   * The ordinal of the thread's last turn. If the thread has a later turn by now, the message gets a new thread with
   * `history`, or without it 409 `THREAD_HAS_GONE_ON`.
   */
  behindOrdinal?: number;
  /** By this, a later request of OpenAI's API finds this turn. */
  completion?: CompletionRecord;
  /** Earlier messages, for a thread that has none yet. */
  history?: readonly ImportedMessage[];
  /**
   * The results of the calls with which the thread's last turn ended. The new turn continues its answer. Ignored if the
   * message gets a new thread, whose `history` has the results.
   */
  handedBack?: HandedBack;
  /** Empty for a turn that only continues with tool results: it answers the user's last message in its thread. */
  parts: StoredPart[];
  userMessageId?: string;
  outboxItemId?: string;
  /** The hash of the outbox item's content. The same id with another hash is refused. */
  outboxHash?: Buffer;
  mode: TurnMode;
  modelId: string;
  effort: string | null;
  notificationPriority: NotificationPriority;
  onBusy: 'queue' | 'reject' | 'interrupt';
  /**
   * The message replaces the one with `userMessageId` and everything after it. `again` answers that message (without an
   * id, the thread's last) once more, `edited` changes its text. A running answer to it is stopped.
   */
  replaces?: 'again' | 'edited';
  /** The state of the sender's device, such as its panes. Stored with the turn as it is. */
  context?: Record<string, unknown>;
  /**
   * Set, in milliseconds, by a caller that gives the turn a head start. The turn is created with its first step's
   * writer epoch, and no other process takes that step for this time. The caller can extend it.
   */
  holdMs?: number;
}

export interface AcceptedMessage {
  turn: Turn;
  /** False when the same message was accepted before: the caller attaches to its turn. */
  created: boolean;
  /**
   * The outbox item's id belongs to a different message. The caller refuses it once it knows that the user may see that
   * turn.
   */
  differs?: true;
  /** The first chunks of the new turn's log. */
  opening?: UiChunk[];
  /** The running turn that the caller must stop so that this one can begin. */
  interrupted?: string;
}

/**
 * Accepts a user message: writes the thread, the message, the turn and the first chunks of its log in one transaction.
 * The same outbox item, or the same message id in a thread, returns the turn that it created before, so that no message
 * is answered twice.
 */
export async function acceptMessage(database: Database, intent: SendIntent, admit?: Admit): Promise<AcceptedMessage> {
  // Another request may write the same outbox item, alias or message meanwhile: the retry finds it.
  return transaction(database, (tx) => acceptMessageIn(tx, intent, admit), { retryDuplicates: true });
}

/** Called for new turns only, never for a message that has its turn already. Rejects to refuse the message. */
export type Admit = (tx: Transaction, turn: Turn) => Promise<void>;

/** Like {@link acceptMessage}, within the caller's transaction. */
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
  const asked = await goOnFrom(tx, thread, intent, now);
  const ordinal = thread.takeOrdinal();
  const holdMs = busy ? undefined : intent.holdMs;
  const beginsAtOnce = holdMs !== undefined;
  const placed: Placed =
    intent.parts.length === 0 && intent.replaces === undefined
      ? { userMessageId: asked ?? newId('message') }
      : await placeUserMessage(tx, thread, intent, { turnId, ordinal, now });
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
  // `save` writes every changed field, the taken ordinal too; `update` would write only the fields that it is given.
  else await thread.save({ transaction: tx });
  const interrupted = placed.interrupted ?? (busy ? await interrupt(tx, thread, intent, now) : undefined);
  // Comes last, since it locks a row that the whole space shares.
  await admit?.(tx, turn);
  return { turn, created: true, opening, ...(interrupted !== undefined && { interrupted }) };
}

/**
 * Puts into the thread what comes before the message: the history of a new thread, or the results that its last turn
 * asked for. Returns the id of the user's last message, if the turn continues with tool results.
 */
async function goOnFrom(tx: Transaction, thread: Thread, intent: SendIntent, now: Date): Promise<string | undefined> {
  const { history = [], handedBack } = intent;
  if (thread.nextTurnOrdinal === 1) return importHistory(tx, thread, history, now);
  return handedBack && (await takeBack(tx, thread, handedBack)).userMessageId;
}

/** If either hash is missing, the messages count as the same. */
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
  const { userId, spaceId, alias, title = null, expiresAt = null, threadId, behindOrdinal, isPrepared } = intent;
  const named = threadId === undefined ? undefined : await Thread.lock(threadId, tx);
  const isLater = behindOrdinal !== undefined && named?.nextTurnOrdinal !== behindOrdinal + 1;
  if (named !== undefined && !isLater && !isPrepared) return named;
  if (isLater && intent.history === undefined) throw threadGoneOn();
  const known = alias && (await ThreadAlias.findOne({ where: { userId, spaceId, alias }, transaction: tx }));
  if (known) return Thread.lock(known.threadId, tx);
  const thread =
    isPrepared && named !== undefined
      ? named.set({ title, expiresAt, wordsDue: title === null ? 0 : 1 })
      : Thread.prepare({ userId, spaceId, title, expiresAt });
  if (alias) await ThreadAlias.create({ userId, spaceId, alias, threadId: thread.id }, { transaction: tx });
  return thread;
}

async function findRepeated(tx: Transaction, thread: Thread, intent: SendIntent): Promise<Turn | undefined> {
  if (intent.userMessageId === undefined || intent.replaces !== undefined || thread.isNewRecord) return undefined;
  const { Message, Turn } = chatModels(tx);
  const message = await Message.find(thread.id, intent.userMessageId, tx);
  if (message === null) return undefined;
  if (message.role !== 'user') {
    throw new DomainError(
      'conflict',
      'MESSAGE_ID_TAKEN',
      'Another message of this thread already has this userMessageId.',
    );
  }
  return (await Turn.findByPk(message.turnId, { transaction: tx })) ?? undefined;
}

async function refuseIfTooBusy(tx: Transaction, thread: Thread, intent: SendIntent): Promise<void> {
  if (intent.onBusy === 'reject') {
    throw new DomainError(
      'conflict',
      'THREAD_BUSY',
      'A turn of this thread is running. Send the message again when the turn has ended.',
    );
  }
  const { activeTurnId } = thread;
  if (activeTurnId !== null && (await chatModels(tx).Turn.countQueued(thread.id, activeTurnId, tx)) >= maxQueuedTurns) {
    throw new DomainError(
      'conflict',
      'QUEUE_FULL',
      `${maxQueuedTurns} messages of this thread are already waiting, the maximum. Send the message again later.`,
    );
  }
}

interface Placed {
  userMessageId: string;
  /** The running turn that answers the replaced message. */
  interrupted?: string | undefined;
}

/** Stores the new message, or replaces an earlier one with it. */
async function placeUserMessage(
  tx: Transaction,
  thread: Thread,
  intent: SendIntent,
  place: { turnId: string; ordinal: number; now: Date },
): Promise<Placed> {
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
    turnId,
    firstSeq: 1,
    lastSeq: chunks.length,
    writerEpoch: 0,
    chunks: encodeChunks(chunks),
  });
  if (context === undefined || Object.keys(context).length === 0) return;
  await insert(tx, 'turn_contexts', { turnId, context });
}

async function interrupt(tx: Transaction, thread: Thread, intent: SendIntent, now: Date): Promise<string | undefined> {
  if (intent.onBusy !== 'interrupt' || thread.activeTurnId === null) return undefined;
  await chatModels(tx).Turn.update(
    { stopRequestedAt: now },
    { where: { id: thread.activeTurnId, terminal: 0, stopRequestedAt: null }, transaction: tx },
  );
  return thread.activeTurnId;
}
