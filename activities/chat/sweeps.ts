import { stopIfUnattended, unattendedTurns } from '../../models/chat/attendance.ts';
import { deleteThread, expiredThreads } from '../../models/chat/deleteThread.ts';
import { endTurn } from '../../models/chat/endTurn.ts';
import { indexDueTexts } from '../../models/chat/indexTexts.ts';
import { chatModels } from '../../models/chat/models.ts';
import { purgeOldTurns } from '../../models/chat/oldTurns.ts';
import { purgeTurnLogs } from '../../models/chat/purge.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { type UnendedTurn, unendedTurns } from '../../models/chat/unendedTurns.ts';
import { keepAlive } from '../keepAlive.ts';
import { createPushTurn } from '../push/pushTurn.ts';
import {
  asSwept,
  graceBefore,
  purgeOlder,
  type SweepReport,
  type Sweeps,
  type Swept,
  sweepEach,
} from '../sweepEach.ts';
import type { ChatDeps } from './deps.ts';
import { audienceOf, describeTurnError, noteEnd } from './endTurn.ts';

/**
 * Kept low, since the other sweeps wait for this one. A large installation that is new to the index needs many runs.
 */
const textsPerSweep = 2_000;
const threadsPerSweep = 500;

/**
 * The chat's sweeps. Each is idempotent and ignores rows younger than the grace period, whose workflow an API process
 * is probably about to start.
 */
export function createChatSweeps(deps: ChatDeps) {
  const { config, database, logger, workflows } = deps;
  const pushTurn = createPushTurn(deps);

  /**
   * Notifies the owner of a turn that no longer has a workflow to do so. This is tried once, since the next sweep does
   * not find the turn.
   */
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
     * Looks after turns that have not ended: starts those whose workflow never started, ends those whose workflow is
     * gone, and repeats the stop signal in case it was lost. Turns that wait for their client, perhaps for days, come
     * last.
     */
    async sweepTurns(): Promise<SweepReport[]> {
      const reports: SweepReport[] = [];
      for (const status of ['running', 'waiting'] as const) {
        const report = await sweepEach<UnendedTurn>({
          logger,
          list: status,
          before: graceBefore(config),
          page: (page) => unendedTurns(database, status, page),
          well: (turns) => workflows.runningTurns(turns.map(({ id }) => id)),
          look: lookAfterTurn,
        });
        reports.push(report);
      }
      return reports;
    },

    /** Signals turns whose calls were answered but whose workflow does not know: the API was killed between the two. */
    async sweepToolAnswers(): Promise<number> {
      using heartbeat = keepAlive();
      const answeredBefore = graceBefore(config);
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

    /**
     * Stops turns of OpenAI's API whose clients have left. The process that answered the client does it too, unless it
     * was killed.
     */
    async stopUnattendedTurns(): Promise<number> {
      using heartbeat = keepAlive();
      let stopped = 0;
      for (const turnId of await unattendedTurns(database)) {
        heartbeat.cancelled.throwIfAborted();
        const state = await stopIfUnattended(deps, turnId);
        if (state === 'stopping') await workflows.stopTurn(turnId);
        if (state !== 'attended') stopped++;
      }
      return stopped;
    },

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

    async indexThreadTexts(): Promise<number> {
      using heartbeat = keepAlive();
      return indexDueTexts(database, {
        most: textsPerSweep,
        onBatch: () => heartbeat.cancelled.throwIfAborted(),
        onFailure: (threadId, error) =>
          logger.warn({ err: error, threadId }, 'A text could not be indexed; the next sweep tries again.'),
      });
    },

    /** Purges the working data of old turns. The messages stay. */
    purgeOldTurns: purgeOlder(config.sweeper.recordRetentionMs, (before, onBatch) =>
      purgeOldTurns(database, before, onBatch),
    ),

    /** Purges logs past their retention. The messages stay; a replay is then rebuilt from them. */
    purgeOldTurnLogs: purgeOlder(config.chat.turnLogRetentionDays * 86_400_000, (before, onBatch) =>
      purgeTurnLogs(database, before, onBatch),
    ),
  };
}

const lostTurn = { status: 'failed', code: 'WORKFLOW_LOST', detail: describeTurnError('WORKFLOW_LOST') } as const;

export const chatSweeps = {
  rescue: ['sweepTurns', 'sweepToolAnswers', 'stopUnattendedTurns'],
  upkeep: ['deleteExpiredThreads', 'indexThreadTexts', 'purgeOldTurnLogs', 'purgeOldTurns'],
} as const satisfies Sweeps<keyof ReturnType<typeof createChatSweeps>>;
