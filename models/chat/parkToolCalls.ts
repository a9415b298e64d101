import { type Database, transaction } from '../database/database.ts';
import { isCompletion } from './completions.ts';
import { chatModels } from './models.ts';
import type { ToolCall } from './toolCall.ts';
import { approvalChunks, failedResult } from './toolResult.ts';
import type { UiChunk } from './turnLog/chunks.ts';
import type { CommittedSegment } from './turnLog/entry.ts';
import type { TurnLog } from './turnLog/turnLog.ts';
import { openCalls, tell } from './turnWaiting.ts';

/** The state of a step's waiting calls. */
export interface ParkedCalls {
  /** An answer is still missing; the turn waits unless a tool is still running. */
  isOpen: boolean;
  /** The time until the first of them expires, in milliseconds. */
  nextDeadlineMs: number;
  /** This check made the turn begin to wait. */
  beganToWait: boolean;
  /**
   * Nothing is left but calls of the client, and it is a client of OpenAI's API. The turn does not wait for it: it ends
   * with these calls.
   */
  isHandedOver?: true;
  /** The calls that may run now. */
  approved: { id: string; toolName: string }[];
}

/**
 * Checks a step's waiting calls: ends the expired ones, and makes the turn wait if it has nothing else to do
 * (`isIdle`). It may be called again at any time.
 */
export async function parkToolCalls(
  deps: { database: Database; turnLog: TurnLog },
  { turnId, isIdle }: { turnId: string; isIdle: boolean },
): Promise<ParkedCalls> {
  const { database, turnLog } = deps;
  const { ToolCall, Turn } = chatModels(database);
  const segments: CommittedSegment[] = [];
  const parked = await transaction(database, async (tx) => {
    segments.length = 0;
    const turn = await Turn.lock(turnId, tx);
    const over = { isOpen: false, nextDeadlineMs: 0, beganToWait: false, approved: [] };
    if (turn === null) return over;
    // The worker may have died between the turn's end and the start of the thread's next one.
    if (turn.isTerminal) return { ...over, ...(turn.finishReason === 'tool-calls' && { isHandedOver: true as const }) };
    const now = Date.now();
    const late = (await openCalls(turnId, tx)).filter((call) => (call.deadlineAt?.getTime() ?? 0) <= now);
    const chunks: UiChunk[] = [];
    for (const call of late) {
      await call.answer({ status: 'failed' }, turn.nextSeq - 1, tx);
      chunks.push(...approvalChunks(call, 'expired'), timeoutOf(call));
    }
    const pending = await ToolCall.pendingOf(turnId, tx);
    const open = pending.filter(({ isOpen }) => isOpen);
    const approved = pending.filter(({ waitsFor, mayRun }) => waitsFor === 'approval' && mayRun);
    const waits = open.length > 0 && approved.length === 0 && isIdle;
    if (waits && open.every(({ waitsFor }) => waitsFor === 'client') && (await isCompletion(tx, turnId))) {
      if (chunks.length > 0) segments.push(await tell(tx, turnLog, turn, chunks, 'running'));
      return { ...over, isHandedOver: true as const };
    }
    const next = waits ? 'waiting' : 'running';
    if (chunks.length > 0 || turn.status !== next) segments.push(await tell(tx, turnLog, turn, chunks, next));
    const deadlines = open.map(({ deadlineAt }) => deadlineAt?.getTime() ?? now);
    return {
      isOpen: open.length > 0,
      beganToWait: waits && turn.status !== 'waiting',
      nextDeadlineMs: open.length === 0 ? 0 : Math.max(0, Math.min(...deadlines) - now),
      approved: approved.map(({ id, toolName }) => ({ id, toolName })),
    };
  });
  for (const segment of segments) turnLog.announce(segment);
  return parked;
}

function timeoutOf({ id, waitsFor }: ToolCall): UiChunk {
  return failedResult(
    id,
    waitsFor === 'client' ? 'The client did not answer in time.' : 'The user did not allow this call in time.',
  );
}
