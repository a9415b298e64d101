import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { keepAlive } from '../keepAlive.ts';
import type { ChatDeps } from './deps.ts';
import type { AfterTurn, EndTurn } from './endTurn.ts';
import type { HeadStarts } from './headStarts.ts';
import { type CallModelInput, type CallModelResult, runStep } from './runStep.ts';

/**
 * One step of a turn, as an activity: it takes over the call's head start in this process, or makes the call itself.
 */
export function createCallModel(deps: ChatDeps, headStarts: Pick<HeadStarts, 'take'>) {
  return async function callModel(input: CallModelInput): Promise<CallModelResult> {
    using heartbeat = keepAlive();
    const { cancelled } = heartbeat;
    const begun = headStarts.take(input);
    if (begun === undefined) return await runStep(deps, input, { cancelled });
    const cancel = () => begun.cancel(cancelled.reason);
    if (cancelled.aborted) cancel();
    else cancelled.addEventListener('abort', cancel, { once: true });
    return await begun.result;
  };
}

export interface HeadStartInput {
  turnId: string;
  modelId: string;
  forMs: number;
}

/** `after` is there where the turn has been ended with its answer: what is left to do, or null. */
export type HeadStartResult = CallModelResult & { after?: AfterTurn | null };

/** How long a head start's activity waits for the turn's end, before it leaves it to the workflow. */
const longestEndMs = 2_000;

/**
 * What a turn's first step has come to, begun here where it has no head start, if it is over within `forMs`; else
 * `callModel` takes it over, or reads how it has ended. An answer ends the turn here: whatever keeps it from that,
 * the workflow ends it.
 */
export function createAwaitHeadStart(
  { logger }: Pick<ChatDeps, 'logger'>,
  headStarts: Pick<HeadStarts, 'soon'>,
  endTurn: EndTurn,
) {
  return async function awaitHeadStart({ forMs, ...first }: HeadStartInput): Promise<HeadStartResult | undefined> {
    const { turnId } = first;
    const result = await headStarts.soon({ ...first, step: 0 }, forMs, Context.current().cancellationSignal);
    if (result?.kind !== 'answered') return result;
    const { finishReason } = result;
    const ending = endTurn({ turnId, end: { status: 'completed', finishReason } }).then(
      (after) => ({ ...result, after: after ?? null }),
      (error: unknown) => {
        logger.warn({ err: error, turnId }, 'A turn could not be ended with its answer; its workflow tries again.');
        return result;
      },
    );
    return Promise.race([ending, delay(longestEndMs, result, { ref: false })]);
  };
}
