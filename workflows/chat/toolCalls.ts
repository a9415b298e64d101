import {
  ActivityFailure,
  condition,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
} from '@temporalio/workflow';
import type { ToolCallReference } from '../../activities/chat/stepResult.ts';
import type { Activities } from '../../activities/main.ts';
import { modelWork, proxyRows } from '../retries.ts';
import { notify } from './afterTurn.ts';
import type { WorkingTime } from './workingTime.ts';

/** A client or a person has answered a waiting call; the answer is in the rows. */
export const toolsAnsweredSignal = defineSignal('toolsAnswered');

/** How many answers were signalled, over the whole turn. */
export interface Answers {
  count: number;
}

/** How many of a step's calls run in parallel; the others queue. */
const maxAtOnce = 32;

/**
 * Runs a step's tool calls in parallel. Calls that wait for the client or for approval are rows, and may wait for days.
 * The turn waits with them once nothing else runs. A tool's failure is an answer for the model, not a failure of the
 * workflow. Resolves with true if the turn has ended with calls for its client to run.
 */
export async function runToolCalls(
  input: { turnId: string; heartbeatTimeoutMs: number },
  step: number,
  calls: readonly ToolCallReference[],
  { answers, time }: { answers: Answers; time: WorkingTime },
): Promise<boolean> {
  const { turnId } = input;
  // Retried without limit: a waiting turn must go on once the database is back.
  const { parkToolCalls } = proxyRows<Activities>();
  const queue = calls.filter(({ waits }) => waits !== true);
  const begun = new Set(queue.map(({ id }) => id));
  const lanes = new Set<Promise<void>>();
  let failure: unknown;

  function fillLanes(): void {
    while (lanes.size < maxAtOnce && queue.length > 0 && failure === undefined) {
      const lane: Promise<void> = drain().finally(() => lanes.delete(lane));
      lanes.add(lane);
    }
  }
  async function drain(): Promise<void> {
    try {
      for (let call = queue.shift(); call !== undefined; call = queue.shift()) await runOne(input, step, call);
    } catch (error) {
      failure ??= error;
    }
  }

  setCurrentDetails(`Runs ${queue.map(({ toolName }) => toolName).join(', ')}`);
  fillLanes();
  try {
    for (let isOpen = queue.length + lanes.size < calls.length; isOpen; ) {
      const heard = answers.count;
      const isIdle = lanes.size === 0;
      const parked = await parkToolCalls({ turnId, isIdle });
      if (parked.isHandedOver) return true;
      queue.push(...parked.approved.filter(({ id }) => !begun.has(id)));
      for (const { id } of parked.approved) begun.add(id);
      fillLanes();
      isOpen = parked.isOpen;
      // Not awaited: if an answer comes first, the push is superfluous.
      if (parked.audience) notify(turnId, parked.audience).catch(() => undefined);
      const isNews = () => answers.count > heard || (lanes.size === 0 && !isIdle) || failure !== undefined;
      if (isOpen && !isNews()) {
        if (lanes.size === 0) {
          time.pause();
          setCurrentDetails(`Waits for a client, or for approval: ${waitingFor(calls)}`);
        }
        await condition(isNews, Math.max(1, parked.nextDeadlineMs));
        time.resume();
      }
      if (failure !== undefined) throw failure;
    }
  } finally {
    await Promise.all(lanes);
  }
  if (failure !== undefined) throw failure;
  return false;
}

function waitingFor(calls: readonly ToolCallReference[]): string {
  const names = calls.flatMap(({ toolName, waits }) => (waits ? [toolName] : []));
  return [...new Set(names)].join(', ');
}

/** Tools are idempotent by tool-call id, so another worker may repeat a call that a dead worker began. */
async function runOne(
  { turnId, heartbeatTimeoutMs }: { turnId: string; heartbeatTimeoutMs: number },
  step: number,
  { id, toolName }: ToolCallReference,
): Promise<void> {
  const { runTool } = proxyActivities<Activities>(modelWork(heartbeatTimeoutMs));
  try {
    await runTool.executeWithOptions({ summary: toolName }, [{ turnId, step, toolCallId: id }]);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
    const { abandonToolCall } = proxyRows<Activities>();
    await abandonToolCall({ turnId, toolCallId: id });
  }
}
