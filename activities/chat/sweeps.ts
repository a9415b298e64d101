import { endTurn } from '../../models/chat/endTurn.ts';
import { chatModels } from '../../models/chat/models.ts';
import { purgeTurnLogs } from '../../models/chat/purge.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { keepAlive } from '../keepAlive.ts';
import { createPushTurn } from '../push/pushTurn.ts';
import { type SweepReport, sweepEach } from '../sweepEach.ts';
import type { ChatDeps } from './deps.ts';
import { audienceOf } from './endTurn.ts';
import { describeTurnError } from './turnErrors.ts';

const maxTurnsPerSweep = 500;

/**
 * What the sweeper does for the chat. Each is idempotent and leaves rows younger than the grace period alone: their API process is
 * probably about to start their workflow.
 */
export function createChatSweeps(deps: ChatDeps) {
  const before = () => new Date(Date.now() - deps.config.sweeper.graceSeconds * 1_000);

  const pushTurn = createPushTurn(deps);

  /** For a turn that has no workflow any more to do it. Tried once: the next sweep does not know of it. */
  async function tell(turn: Turn): Promise<void> {
    const { seq, subscriptionIds } = (await audienceOf(deps, turn)) ?? { seq: 0, subscriptionIds: [] };
    const turnId = turn.id;
    await Promise.allSettled(subscriptionIds.map((subscriptionId) => pushTurn({ turnId, seq, subscriptionId })));
  }

  return {
    /** Unended turns whose workflow is not running: one that never was is started, one that is gone is finalized. */
    async sweepTurns(): Promise<SweepReport> {
      using _heartbeat = keepAlive();
      const turns = await chatModels(deps.database).Turn.unendedBefore(before(), maxTurnsPerSweep);
      return sweepEach(turns, async (turn) => {
        const state = await deps.workflows.describeTurn(turn.id);
        if (state === 'running') return 'left';
        if (state === 'absent') {
          await deps.workflows.startTurn(turn);
          return 'started';
        }
        const end = turn.stopRequestedAt === null ? lostTurn : ({ status: 'stopped' } as const);
        const { turn: ended, nextTurn } = await endTurn(deps, turn.id, end);
        if (nextTurn !== undefined) await deps.workflows.startTurn(nextTurn);
        if (end.status === 'failed' && ended !== null) await tell(ended);
        return 'ended';
      });
    },

    /** Turns whose calls were answered, but whose workflow has not heard of it: the API was killed between the two. */
    async sweepToolAnswers(): Promise<number> {
      using _heartbeat = keepAlive();
      const turnIds = await chatModels(deps.database).ToolCall.turnsAnsweredUnheard(
        deps.database,
        before(),
        maxTurnsPerSweep,
      );
      for (const turnId of turnIds) await deps.workflows.toolsAnswered(turnId);
      return turnIds.length;
    },

    /** Logs whose time is over. The messages stay; a replay is then rebuilt from them. */
    async purgeOldTurnLogs(): Promise<number> {
      using _heartbeat = keepAlive();
      const retentionMs = deps.config.chat.turnLogRetentionDays * 86_400_000;
      return purgeTurnLogs(deps.database, new Date(Date.now() - retentionMs));
    },
  };
}

const lostTurn = { status: 'failed', code: 'WORKFLOW_LOST', detail: describeTurnError('WORKFLOW_LOST') } as const;

export const chatSweeps = [
  'sweepTurns',
  'sweepToolAnswers',
  'purgeOldTurnLogs',
] as const satisfies readonly (keyof ReturnType<typeof createChatSweeps>)[];
