import { deleteThread } from '../../models/chat/deleteThread.ts';
import { endTurn } from '../../models/chat/endTurn.ts';
import { expiredThreads } from '../../models/chat/expiredThreads.ts';
import { indexDueTexts } from '../../models/chat/indexTexts.ts';
import { chatModels } from '../../models/chat/models.ts';
import { purgeOldTurns } from '../../models/chat/oldTurns.ts';
import { purgeTurnLogs } from '../../models/chat/purge.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { type UnendedTurn, unendedTurns } from '../../models/chat/unendedTurns.ts';
import { keepAlive } from '../keepAlive.ts';
import { createPushTurn } from '../push/pushTurn.ts';
import { asSwept, type SweepReport, type Sweeps, type Swept, sweepEach } from '../sweepEach.ts';
import type { ChatDeps } from './deps.ts';
import { audienceOf, describeTurnError, noteEnd } from './endTurn.ts';

/** The other sweeps wait for it: those of a large installation that is new to the index take many. */
const textsPerSweep = 2_000;
const threadsPerSweep = 500;

/**
 * What the sweeper does for the chat. Each is idempotent and leaves rows younger than the grace period alone: their API
 * process is probably about to start their workflow.
 */
export function createChatSweeps(deps: ChatDeps) {
  const { config, database, logger, workflows } = deps;
  const before = () => new Date(Date.now() - config.sweeper.graceSeconds * 1_000);

  const pushTurn = createPushTurn(deps);

  /** For a turn that no longer has a workflow to do it. Tried once: the next sweep does not know of it. */
  async function tell(turn: Turn): Promise<void> {
    const { seq, subscriptionIds } = (await audienceOf(deps, turn)) ?? { seq: 0, subscriptionIds: [] };
    const turnId = turn.id;
    await Promise.allSettled(subscriptionIds.map((subscriptionId) => pushTurn({ turnId, seq, subscriptionId })));
  }

  async function lookAfterTurn(turn: UnendedTurn, isWell: boolean): Promise<Swept> {
    const state = isWell ? 'running' : await workflows.describeTurn(turn.id);
    if (state === 'running') {
      return turn.stopRequestedAt === null ? 'left' : asSwept(await workflows.stopTurn(turn.id), 'reminded');
    }
    if (state === 'absent') return asSwept(await workflows.startTurn(turn), 'started');
    const end = turn.stopRequestedAt === null ? lostTurn : ({ status: 'stopped' } as const);
    const { turn: ended, nextTurn, ...result } = await endTurn(deps, turn.id, end);
    if (result.ended && ended !== null) noteEnd(deps, ended);
    if (nextTurn !== undefined) await workflows.startTurn(nextTurn);
    if (end.status === 'failed' && ended !== null) await tell(ended);
    return 'ended';
  }

  return {
    /**
     * Unended turns: starts those whose workflow never started, finalizes those whose workflow is gone, and signals
     * those that are to stop again, in case the one signal was lost. Those that wait for their client, perhaps for
     * days, come last.
     */
    async sweepTurns(): Promise<SweepReport[]> {
      const reports: SweepReport[] = [];
      for (const status of ['running', 'waiting'] as const) {
        const report = await sweepEach<UnendedTurn>({
          logger,
          list: status,
          before: before(),
          page: (page) => unendedTurns(database, status, page),
          well: (turns) => workflows.runningTurns(turns.map(({ id }) => id)),
          look: lookAfterTurn,
        });
        reports.push(report);
      }
      return reports;
    },

    /** Turns whose calls were answered, but whose workflow has not heard of it: the API was killed between the two. */
    async sweepToolAnswers(): Promise<number> {
      using heartbeat = keepAlive();
      const answeredBefore = before();
      let told = 0;
      for (let last = ''; ; ) {
        const turnIds = await chatModels(database).ToolCall.turnsAnsweredUnheard(database, answeredBefore, last);
        const next = turnIds.at(-1);
        if (next === undefined) return told;
        last = next;
        heartbeat.cancelled.throwIfAborted();
        told += turnIds.length;
        await Promise.all(turnIds.map((turnId) => workflows.toolsAnswered(turnId)));
      }
    },

    /** Threads that were to be kept for a while only. */
    async deleteExpiredThreads(): Promise<number> {
      using heartbeat = keepAlive();
      const threadIds = await expiredThreads(database, threadsPerSweep);
      for (const threadId of threadIds) {
        heartbeat.cancelled.throwIfAborted();
        try {
          await workflows.startOperation(await deleteThread(database, threadId));
        } catch (error) {
          logger.warn({ err: error, threadId }, 'An expired thread was not deleted; the next sweep tries again.');
        }
      }
      return threadIds.length;
    },

    /** Words by which messages and titles are found: of new ones, and of those that have changed. */
    async indexThreadTexts(): Promise<number> {
      using heartbeat = keepAlive();
      return indexDueTexts(database, {
        most: textsPerSweep,
        onBatch: () => heartbeat.cancelled.throwIfAborted(),
        onFailure: (threadId, error) =>
          logger.warn({ err: error, threadId }, 'A text could not be indexed; the next sweep tries again.'),
      });
    },

    /** The working data of turns, once it is no longer needed. The messages stay. */
    async purgeOldTurns(): Promise<number> {
      using heartbeat = keepAlive();
      const before = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return purgeOldTurns(database, before, () => heartbeat.cancelled.throwIfAborted());
    },

    /** Logs past their retention. The messages stay; a replay is then rebuilt from them. */
    async purgeOldTurnLogs(): Promise<number> {
      using heartbeat = keepAlive();
      const retentionMs = config.chat.turnLogRetentionDays * 86_400_000;
      const before = new Date(Date.now() - retentionMs);
      return purgeTurnLogs(database, before, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

const lostTurn = { status: 'failed', code: 'WORKFLOW_LOST', detail: describeTurnError('WORKFLOW_LOST') } as const;

export const chatSweeps = {
  rescue: ['sweepTurns', 'sweepToolAnswers'],
  upkeep: ['deleteExpiredThreads', 'indexThreadTexts', 'purgeOldTurnLogs', 'purgeOldTurns'],
} as const satisfies Sweeps<keyof ReturnType<typeof createChatSweeps>>;
