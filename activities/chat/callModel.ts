import { Context } from '@temporalio/activity';
import { keepAlive } from '../keepAlive.ts';
import type { ChatDeps } from './deps.ts';
import type { HeadStarts } from './headStarts.ts';
import { runStep } from './runStep.ts';
import type { CallModelInput, CallModelResult } from './stepResult.ts';

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

/**
 * What a turn's first step has come to, begun here where it has no head start, if it is over within `forMs`; else
 * `callModel` takes it over, or reads how it has ended.
 */
export function createAwaitHeadStart(headStarts: Pick<HeadStarts, 'soon'>) {
  return function awaitHeadStart({ forMs, ...first }: HeadStartInput): Promise<CallModelResult | undefined> {
    return headStarts.soon({ ...first, step: 0 }, forMs, Context.current().cancellationSignal);
  };
}
