import { DomainError, notFound } from '../../base/errors.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Authority, insufficientScope, lackingOf } from '../identity/authority.ts';
import { chatModels } from './models.ts';
import { approvalChunks, failedResult, type ResultChunk, statusOf } from './toolResult.ts';
import type { UiChunk } from './turnLog/chunks.ts';
import type { CommittedSegment } from './turnLog/entry.ts';
import type { TurnLog } from './turnLog/turnLog.ts';
import { nextState, openCalls, tell } from './turnWaiting.ts';

interface Deps {
  database: Database;
  turnLog: TurnLog;
}

/**
 * Adds a client's results to the turn, each once. The first result of a call counts; a repeated or late one changes
 * nothing. Returns the chunk after which the answer to these results begins.
 */
export async function answerToolCalls(
  { database, turnLog }: Deps,
  turnId: string,
  results: readonly ResultChunk[],
): Promise<{ after: number; isNew: boolean }> {
  const { ToolCall, Turn } = chatModels(database);
  const segments: CommittedSegment[] = [];
  const answered = await transaction(database, async (tx) => {
    segments.length = 0;
    const turn = await Turn.lock(turnId, tx);
    if (turn === null) throw notFound('turn');
    const chunks: UiChunk[] = [];
    let after = 0;
    for (const result of results) {
      const call = await ToolCall.findOne({ where: { id: result.toolCallId, turnId }, transaction: tx });
      if (call === null) throw notFound('tool call');
      if (call.isOpen && !turn.isTerminal) {
        await call.answer({ status: statusOf(result) }, turn.nextSeq - 1, tx);
        chunks.push(result);
      }
      after = Math.max(after, call.askedSeq ?? 0);
    }
    if (chunks.length === 0) return { after, isNew: false };
    const open = await openCalls(turnId, tx);
    segments.push(await tell(tx, turnLog, turn, chunks, nextState(turn, open, false)));
    return { after, isNew: true };
  });
  for (const segment of segments) turnLog.announce(segment);
  return answered;
}

/**
 * Approves or denies a tool call, once, from any device. Repeating the same decision is fine. Throws 409
 * `APPROVAL_DECIDED` if it was decided otherwise, `APPROVAL_EXPIRED` after its deadline and `APPROVAL_CLOSED` after the
 * turn's end, and 403 `INSUFFICIENT_SCOPE` for a key that approves what it could not do itself. Returns the chunk after
 * which the continuation begins.
 */
export async function decideToolCall(
  { database, turnLog }: Deps,
  { turnId, toolCallId, approved, by }: { turnId: string; toolCallId: string; approved: boolean; by: Authority },
): Promise<{ after: number }> {
  const decision = approved ? 'approved' : 'denied';
  const { ToolCall, Turn } = chatModels(database);
  const segments: CommittedSegment[] = [];
  const decided = await transaction(database, async (tx) => {
    segments.length = 0;
    const turn = await Turn.lock(turnId, tx);
    const call = await ToolCall.findOne({ where: { id: toolCallId, turnId }, transaction: tx });
    if (turn === null || call === null || call.waitsFor !== 'approval') throw notFound('approval');
    const lacking = lackingOf(by, call.scopes);
    if (approved && lacking !== undefined) throw insufficientScope(lacking, ', which allowing this call needs');
    if (call.decision === decision) return { after: call.askedSeq ?? 0 };
    if (call.decision !== null) {
      throw new DomainError('conflict', 'APPROVAL_DECIDED', `This call has already been ${call.decision}.`);
    }
    // An approval is refused after its deadline, even if no worker has expired the call yet.
    if (call.isExpired) {
      throw new DomainError('conflict', 'APPROVAL_EXPIRED', 'This call was not approved in time, so it is not made.');
    }
    if (!call.isOpen || turn.isTerminal) {
      throw new DomainError(
        'conflict',
        'APPROVAL_CLOSED',
        'The turn of this call has ended, so the call can no longer be decided.',
      );
    }
    const status = approved ? 'pending' : 'failed';
    await call.answer({ decision, status }, turn.nextSeq - 1, tx);
    const chunks = approvalChunks(call, decision);
    if (!approved) chunks.push(failedResult(toolCallId, 'The user did not allow this call.'));
    const open = await openCalls(turnId, tx);
    segments.push(await tell(tx, turnLog, turn, chunks, nextState(turn, open, approved)));
    return { after: call.askedSeq ?? 0 };
  });
  for (const segment of segments) turnLog.announce(segment);
  return decided;
}
