import { Op, type Transaction } from 'sequelize';
import { type Database, transaction } from '../database/database.ts';
import { execute, insertInstance } from '../database/sql.ts';
import { cannotBeStored } from '../database/unstorable.ts';
import { noteEvent } from '../webhooks/events.ts';
import { beginningOf, storePieces } from './answerPieces.ts';
import { answerMetadata, closeTexts, closeTools, closingChunks } from './closingChunks.ts';
import { assistantPosition, userPosition } from './message.ts';
import { chatModels } from './models.ts';
import type { Thread } from './thread.ts';
import type { Turn } from './turn.ts';
import type { FinishReason, UiChunk, Usage } from './turnLog/chunks.ts';
import { type CommittedSegment, WriterFencedError } from './turnLog/entry.ts';
import type { MessagePart } from './turnLog/foldChunks.ts';
import type { RowChanges, TurnLog } from './turnLog/turnLog.ts';

/** How a turn ended. A terminal state never changes: the first end wins. */
export type TurnEnd =
  | { status: 'completed'; finishReason: FinishReason }
  | { status: 'stopped' }
  | { status: 'failed'; code: string; detail: string };

export interface EndedTurn {
  /** False when the turn had ended before. */
  ended: boolean;
  /** The turn as it is now; null if there is none. */
  turn: Turn | null;
  thread: Thread | null;
  /** The thread's next turn. It is active now, and the caller starts its workflow. */
  nextTurn: Turn | undefined;
}

/** The turn's last step, which ends in the same commit. */
export interface LastStep {
  /** The writer's epoch. If the turn has another one, nothing changes and {@link WriterFencedError} is thrown. */
  epoch: number;
  /** The chunks that the step has not written yet, including its last one. */
  chunks: UiChunk[];
  /** Records how the step's model call ended, once the turn is locked. */
  record(tx: Transaction): Promise<void>;
  /** Charges for the model call. This comes last, since it locks a row that the whole space shares. */
  settle(tx: Transaction): Promise<void>;
}

/** Makes the stored message's parts from the parts that were streamed. */
type Keep = (parts: MessagePart[]) => MessagePart[];

const tooLarge: TurnEnd = {
  status: 'failed',
  code: 'ANSWER_TOO_LARGE',
  detail: 'The answer is too large for the database. Its beginning is kept.',
};

/**
 * Ends a turn in one transaction: the assistant's message as its readers saw it, the last chunk, the terminal state,
 * and the thread's next turn. The workflow and the sweeper may call it again. If the database will never take the
 * message, the turn fails and keeps as much of it as fits, so that the thread is free in any case.
 */
export async function endTurn(
  deps: { database: Database; turnLog: TurnLog },
  turnId: string,
  end: TurnEnd,
): Promise<EndedTurn> {
  const ways: [TurnEnd, Keep][] = [
    [end, (parts) => parts],
    [tooLarge, beginningOf],
    [tooLarge, () => []],
  ];
  for (const [at, [asEnd, keep]] of ways.entries()) {
    try {
      return await endOnce(deps, turnId, { end: asEnd, keep });
    } catch (error) {
      if (!cannotBeStored(error) || at === ways.length - 1) throw error;
    }
  }
  throw new Error('Unreachable: the last way returns or throws.');
}

/**
 * Ends a turn together with its last step. Throws, and changes nothing, if the database does not take the message, or
 * if the turn has ended or belongs to another writer.
 */
export async function endTurnWithStep(
  deps: { database: Database; turnLog: TurnLog },
  turnId: string,
  end: TurnEnd,
  step: LastStep,
): Promise<EndedTurn> {
  return endOnce(deps, turnId, { end, step, keep: (parts) => parts });
}

async function endOnce(
  deps: { database: Database; turnLog: TurnLog },
  turnId: string,
  { end, keep, step }: { end: TurnEnd; keep: Keep; step?: LastStep },
): Promise<EndedTurn> {
  const { database, turnLog } = deps;
  const { ModelCall, Thread, Turn } = chatModels(database);
  const segments: CommittedSegment[] = [];
  // The fold has the closing chunks before the log has them, so a retry must begin with a fresh fold.
  const forgetFold = () => turnLog.folds.forget(turnId);
  let tries = 0;
  const result = await transaction(database, async (tx) => {
    segments.length = 0;
    if (tries++ > 0) forgetFold();
    // Every transaction locks the thread first and then the turn. The turns of a deleted thread end too.
    const { thread, isHeard } = await Thread.lockOfTurn(turnId, tx);
    const turn = await Turn.lockRow(turnId, tx);
    if (step !== undefined && (turn === null || turn.isTerminal || turn.writerEpoch !== step.epoch)) {
      throw new WriterFencedError(turnId);
    }
    if (turn === null) return { ended: false, turn, thread, nextTurn: undefined };
    if (turn.isTerminal) return { ended: false, turn, thread, nextTurn: await successorOf(tx, thread, turnId) };
    const { fold, nextSeq } = await turnLog.folds.of(turnId, tx);
    turn.nextSeq = nextSeq;
    for (const chunk of step?.chunks ?? []) fold.add(chunk);
    await step?.record(tx);
    const usage = await ModelCall.usageOf(turnId, { tx });
    const open = [...closeTexts(fold), ...(await closeTools(tx, turnId, end, fold))];
    for (const chunk of open) fold.add(chunk);
    const now = new Date();
    const chunks = [...(step?.chunks ?? []), ...open, ...closingChunks(turn, end, usage)];
    const segment = await turnLog.appendLocked(tx, turn, chunks, { epoch: step?.epoch, changes: endOf(end, now) });
    segments.push(segment);
    const { finishReason, errorCode } = endOf(end, now);
    turn.set({ nextSeq: segment.lastSeq + 1, terminal: 1, status: end.status, endedAt: now, finishReason, errorCode });
    await storeAnswer(tx, turn, end, keep(fold.parts()), usage);
    const { id, threadId, spaceId } = turn;
    const data = { turnId: id, threadId, spaceId, status: end.status, errorCode: errorCode ?? null };
    if (isHeard) await noteEvent(tx, { id: `turn.ended:${id}`, type: 'turn.ended', spaceId, data });
    const next = thread?.activeTurnId === turnId ? await promoteNext(tx, turnLog, thread, turn, now) : undefined;
    if (next !== undefined) segments.push(next.segment);
    await step?.settle(tx);
    return { ended: true, turn, thread, nextTurn: next?.turn };
  }).finally(forgetFold);
  for (const segment of segments) turnLog.announce(segment);
  return result;
}

function endOf(end: TurnEnd, now: Date): RowChanges {
  return {
    terminal: 1,
    status: end.status,
    endedAt: now,
    finishReason: end.status === 'completed' ? end.finishReason : null,
    errorCode: end.status === 'failed' ? end.code : null,
    errorDetail: end.status === 'failed' ? end.detail : null,
  };
}

/** Asks a turn to stop. A queued turn ends at once; a running one is ended by its workflow. */
export async function requestStop(
  deps: { database: Database; turnLog: TurnLog },
  turnId: string,
): Promise<'ended' | 'stopping'> {
  const turn = await transaction(deps.database, async (tx) => {
    const locked = await chatModels(tx).Turn.lock(turnId, tx);
    if (locked !== null && !locked.isTerminal && locked.stopRequestedAt === null) {
      await locked.update({ stopRequestedAt: new Date() }, { transaction: tx });
    }
    return locked;
  });
  if (turn === null || turn.isTerminal) return 'ended';
  if (turn.status !== 'queued') return 'stopping';
  // If the turn was promoted meanwhile, `endTurn` ends it all the same, and its workflow finds it ended.
  await endTurn(deps, turnId, { status: 'stopped' });
  return 'ended';
}

/**
 * If the process died between the turn's end and the start of the next turn, a repeated call returns that turn again.
 */
async function successorOf(tx: Transaction, thread: Thread | null, turnId: string): Promise<Turn | undefined> {
  const active = thread?.activeTurnId ?? null;
  if (active === null || active === turnId) return undefined;
  return (await chatModels(tx).Turn.findByPk(active, { transaction: tx })) ?? undefined;
}

/** Stores the output, however the turn ended; a turn without output leaves no message. */
async function storeAnswer(
  tx: Transaction,
  turn: Turn,
  end: TurnEnd,
  parts: MessagePart[],
  usage: Usage,
): Promise<void> {
  if (parts.every((part) => part.type === 'step-start')) return;
  const now = new Date();
  const pieces = await storePieces(tx, turn.id, parts);
  const message = chatModels(tx).Message.build({
    threadId: turn.threadId,
    turnOrdinal: turn.ordinal,
    position: assistantPosition,
    id: turn.assistantMessageId,
    turnId: turn.id,
    role: 'assistant',
    parts: pieces === 0 ? parts : [],
    pieces,
    metadata: answerMetadata(turn, end, usage),
    createdAt: now,
    replacedAt: (await isReplaced(tx, turn)) ? now : null,
  });
  await insertInstance(tx, message);
}

/** Whether the turn's message was edited or regenerated while it was being answered. Such a turn was asked to stop. */
async function isReplaced(tx: Transaction, turn: Turn): Promise<boolean> {
  if (turn.stopRequestedAt === null) return false;
  // A turn that continues with tool results answers the message of an earlier turn.
  const place = { turnOrdinal: { [Op.lte]: turn.ordinal }, position: userPosition };
  const asked = { threadId: turn.threadId, id: turn.userMessageId, ...place, replacedAt: null };
  return (await chatModels(tx).Message.count({ where: asked, transaction: tx })) === 0;
}

/** Makes the thread's oldest queued turn the active one, and logs that it runs. */
async function promoteNext(
  tx: Transaction,
  turnLog: TurnLog,
  thread: Thread,
  ended: Turn,
  now: Date,
): Promise<{ turn: Turn; segment: CommittedSegment } | undefined> {
  const next = await chatModels(tx).Turn.nextQueued(thread.id, ended.ordinal, tx);
  thread.set({ activeTurnId: next?.id ?? null, updatedAt: now });
  await execute(tx, 'UPDATE threads SET active_turn_id = ?, updated_at = ? WHERE id = ?', [
    thread.activeTurnId,
    now,
    thread.id,
  ]);
  if (next === null) return undefined;
  const changes = { status: 'running', startedAt: now } as const;
  const segment = await turnLog.appendLocked(tx, next, [next.statusChunk('running')], { changes });
  return { turn: next, segment };
}
