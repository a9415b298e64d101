import { endTurn as endTurnInModel, type TurnEnd } from '../../models/chat/endTurn.ts';
import { Thread } from '../../models/chat/thread.ts';
import { Turn } from '../../models/chat/turn.ts';
import type { TurnEndInput } from '../../workflows/rules/turnEnd.ts';
import type { ActivityDeps } from '../deps.ts';
import { describeTurnError } from './turnErrors.ts';

export interface EndTurnInput {
  turnId: string;
  end: TurnEndInput;
}

/** Whom to tell where a turn rests, unless they have seen it: push subscriptions, by id. */
export interface Audience {
  /** The last chunk of what there is to see. */
  seq: number;
  subscriptionIds: string[];
}

/** What is left to do when a turn has ended; undefined for most turns. */
export interface AfterTurn {
  audience?: Audience;
  namesThread?: boolean;
}

/** Ends a turn, once, and starts the workflow of the thread's next one. */
export function createEndTurn(deps: ActivityDeps) {
  return async function endTurn({ turnId, end }: EndTurnInput): Promise<AfterTurn | undefined> {
    const { nextTurn } = await endTurnInModel(deps, turnId, withDetail(end));
    if (end.status !== 'completed') await deps.metering.release(turnId);
    if (nextTurn !== undefined) await deps.workflows.startTurn(nextTurn);
    // A turn that its owner has stopped is no news to them.
    if (end.status === 'stopped') return undefined;
    const [audience, namesThread] = await Promise.all([
      audienceOf(deps, turnId),
      end.status === 'completed' && wantsName(deps, turnId),
    ]);
    if (audience === undefined && !namesThread) return undefined;
    return { ...(audience && { audience }), ...(namesThread && { namesThread }) };
  };
}

/** The devices of the turn's owner, where they have any. */
export async function audienceOf(deps: Pick<ActivityDeps, 'push'>, turnId: string): Promise<Audience | undefined> {
  const turn = await Turn.findByPk(turnId);
  const subscriptionIds = turn === null ? [] : await deps.push.subscriptions.idsOf(turn.userId);
  return turn === null || subscriptionIds.length === 0 ? undefined : { seq: turn.nextSeq - 1, subscriptionIds };
}

async function wantsName(deps: ActivityDeps, turnId: string): Promise<boolean> {
  const turn = await Turn.findByPk(turnId, { attributes: ['threadId', 'modelId'] });
  if (turn === null || deps.catalogue.titleModelFor(turn.modelId) === undefined) return false;
  return (await Thread.open(turn.threadId))?.title === null;
}

function withDetail(end: TurnEndInput): TurnEnd {
  return end.status === 'failed' ? { ...end, detail: describeTurnError(end.code) } : end;
}
