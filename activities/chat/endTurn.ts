import { endTurn as endTurnInModel, type TurnEnd } from '../../models/chat/endTurn.ts';
import type { TurnEndInput } from '../../workflows/rules/turnEnd.ts';
import type { ActivityDeps } from '../deps.ts';
import { describeTurnError } from './turnErrors.ts';

export interface EndTurnInput {
  turnId: string;
  end: TurnEndInput;
}

/** Ends a turn, once, and starts the workflow of the thread's next one. */
export function createEndTurn(deps: ActivityDeps) {
  return async function endTurn({ turnId, end }: EndTurnInput): Promise<void> {
    const { nextTurn } = await endTurnInModel(deps, turnId, withDetail(end));
    if (end.status !== 'completed') await deps.metering.release(turnId);
    if (nextTurn !== undefined) await deps.workflows.startTurn(nextTurn);
  };
}

function withDetail(end: TurnEndInput): TurnEnd {
  return end.status === 'failed' ? { ...end, detail: describeTurnError(end.code) } : end;
}
