import { createHash } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import { DomainError } from '../../base/errors.ts';
import { chatModels } from '../../models/chat/models.ts';
import { wasSeen } from '../../models/push/receipts.ts';
import type { PushDeps } from './deps.ts';
import { payloadOf, urgencyOf } from './payload.ts';

export interface PushTurnInput {
  turnId: string;
  /** The chunk at which the turn rests: a reader who has it needs no push. */
  seq: number;
  subscriptionId: string;
}

const ttlSeconds = 86_400;

/**
 * Tells one device that a turn has ended or waits, unless somebody has seen it, or the turn has gone on. May push twice
 * when killed right after the push: both carry the turn's tag, so the device shows one.
 */
export function createPushTurn(deps: PushDeps) {
  const { Message, Thread, Turn } = chatModels(deps.database);
  return async function pushTurn({ turnId, seq, subscriptionId }: PushTurnInput): Promise<void> {
    const turn = await Turn.findByPk(turnId);
    if (turn === null || turn.nextSeq - 1 !== seq || (await wasSeen(deps.database, turnId, seq))) return;
    const [thread, access] = await Promise.all([
      Thread.open(turn.threadId),
      deps.members.access(turn.spaceId, turn.userId),
    ]);
    if (thread === null || access === undefined) return;
    const { subscriptions } = deps.push;
    const target = await subscriptions.open(turn.userId, subscriptionId);
    if (target === undefined) return;
    const answer = await Message.find(turn.threadId, turn.assistantMessageId);
    const outcome = await deps
      .pushSender({
        target,
        payload: payloadOf(turn, thread, answer),
        urgency: urgencyOf(turn.notificationPriority),
        topic: createHash('sha256').update(turnId).digest('base64url').slice(0, 32),
        ttlSeconds,
      })
      .catch((error: unknown) => {
        // An address that users may not reach will stay forbidden.
        if (error instanceof DomainError && error.kind === 'unprocessable') return 'refused' as const;
        deps.logger.warn({ err: error, turnId, subscriptionId }, 'A push service cannot be reached.');
        return { later: true as const, retryAfterSeconds: undefined };
      });
    if (outcome === 'sent') return subscriptions.markPushed(subscriptionId);
    if (outcome === 'gone') return subscriptions.forget(subscriptionId);
    if (outcome === 'refused') return;
    throw ApplicationFailure.create({
      type: 'PUSH_SERVICE_UNAVAILABLE',
      ...(outcome.retryAfterSeconds !== undefined && { nextRetryDelay: outcome.retryAfterSeconds * 1_000 }),
    });
  };
}

export const push = { create: (deps: PushDeps) => ({ pushTurn: createPushTurn(deps) }) };
