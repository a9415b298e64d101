import type { Turn } from '../../models/chat/turn.ts';
import type { ActivityDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import type { StepRun } from './headStarts.ts';
import { type CallModelInput, type CallModelResult, runStep } from './runStep.ts';

/** Begins a step of a turn in this process. */
export function beginStep(deps: ActivityDeps, input: CallModelInput, turnAsMade?: Turn): StepRun {
  const abandon = new AbortController();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  const { promise: shown, resolve: onShown } = Promise.withResolvers<void>();
  return {
    result: runStep(deps, input, { cancelled: abandon.signal, progress: { onAsked, onShown }, turnAsMade }),
    asked,
    shown,
    cancel: (reason) => abandon.abort(reason),
  };
}

/** One step of a turn, as an activity: the call that has a head start in this process, else one of its own. */
export function createCallModel(deps: ActivityDeps) {
  return async function callModel(input: CallModelInput): Promise<CallModelResult> {
    using heartbeat = keepAlive();
    const { cancelled } = heartbeat;
    const run = deps.headStarts.take(input) ?? beginStep(deps, input);
    const cancel = () => run.cancel(cancelled.reason);
    if (cancelled.aborted) cancel();
    else cancelled.addEventListener('abort', cancel, { once: true });
    return await run.result;
  };
}
