import { Context } from '@temporalio/activity';
import { keepAlive } from '../keepAlive.ts';
import type { ChatDeps } from './deps.ts';
import type { HeadStarts } from './headStarts.ts';
import { runStep } from './runStep.ts';
import type { CallModelInput, CallModelResult } from './stepResult.ts';

/**
 * The activity that takes one step of a turn. It takes over the step's head start if this process has one, or makes the
 * model call itself.
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

/**
 * The local activity that waits for the turn's first model call, and makes it if no process has begun it. Undefined if
 * the call takes longer than `forMs`: `callModel` then takes it over or reads its result.
 */
export function createAwaitHeadStart(headStarts: Pick<HeadStarts, 'soon'>) {
  return function awaitHeadStart({ forMs, ...first }: HeadStartInput): Promise<CallModelResult | undefined> {
    return headStarts.soon({ ...first, step: 0 }, forMs, Context.current().cancellationSignal);
  };
}
