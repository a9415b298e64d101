import { endTurn } from '../../models/chat/endTurn.ts';
import { chatModels } from '../../models/chat/models.ts';
import { purgeTurnLogs } from '../../models/chat/purge.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { transaction } from '../../models/database.ts';
import { idempotencyModels } from '../../models/idempotency.ts';
import { purgeIdentity } from '../../models/identity/purge.ts';
import { operationModels } from '../../models/operation.ts';
import { audienceOf } from '../chat/endTurn.ts';
import { describeTurnError } from '../chat/turnErrors.ts';
import type { ActivityDeps } from '../deps.ts';
import { keepAlive } from '../keepAlive.ts';
import { createPushTurn } from '../push/pushTurn.ts';

const maxRowsPerSweep = 500;
const describesAtOnce = 10;

export interface SweepReport {
  looked: number;
  started: number;
  ended: number;
}

/**
 * What the sweeper does. Each is idempotent and leaves rows younger than the grace period alone: their API process is
 * probably about to start their workflow.
 */
export function createSweeps(deps: ActivityDeps) {
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
      const turns = await chatModels(deps.database).Turn.unendedBefore(before(), maxRowsPerSweep);
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

    /** The same for operations. */
    async sweepOperations(): Promise<SweepReport> {
      using _heartbeat = keepAlive();
      const operations = await operationModels(deps.database).Operation.unendedBefore(before(), maxRowsPerSweep);
      return sweepEach(operations, async (operation) => {
        const { id, kind, cancelRequestedAt } = operation;
        const state = await deps.workflows.describeOperation(kind, id);
        if (state === 'running') return 'left';
        if (state === 'absent') {
          await deps.workflows.startOperation(operation);
          return 'started';
        }
        const end =
          cancelRequestedAt === null
            ? ({ status: 'failed', code: 'WORKFLOW_LOST', detail: describeTurnError('WORKFLOW_LOST') } as const)
            : ({ status: 'cancelled' } as const);
        await transaction(deps.database, (tx) => operationModels(deps.database).Operation.end(id, end, tx));
        return 'ended';
      });
    },

    /** Logs whose time is over. The messages stay; a replay is then rebuilt from them. */
    async purgeOldTurnLogs(): Promise<number> {
      using _heartbeat = keepAlive();
      const retentionMs = deps.config.chat.turnLogRetentionDays * 86_400_000;
      return purgeTurnLogs(deps.database, new Date(Date.now() - retentionMs));
    },

    /** What people typed into a form and its time is over. Reads have not seen it since; this takes it out of the table. */
    async purgeExpiredSecrets(): Promise<number> {
      using _heartbeat = keepAlive();
      return deps.secrets.dynamic.purgeExpired(new Date());
    },

    /** Codes, sign-ins, invitations and sessions that nobody can use any more, and the devices of such sessions. */
    async purgeIdentity(): Promise<number> {
      using _heartbeat = keepAlive();
      await deps.push.subscriptions.purgeRevoked();
      return purgeIdentity(deps.database, new Date());
    },

    /** What the egress log does not keep any longer. */
    async purgeEgressLog(): Promise<number> {
      using _heartbeat = keepAlive();
      return deps.egressRules.purge(new Date());
    },

    /** Idempotency keys older than their 30 days. */
    async purgeIdempotencyKeys(): Promise<number> {
      using _heartbeat = keepAlive();
      return idempotencyModels(deps.database).Idempotency.purge();
    },
  };
}

const lostTurn = { status: 'failed', code: 'WORKFLOW_LOST', detail: describeTurnError('WORKFLOW_LOST') } as const;

async function sweepEach<Row>(
  rows: Row[],
  sweepOne: (row: Row) => Promise<'left' | 'started' | 'ended'>,
): Promise<SweepReport> {
  const report: SweepReport = { looked: rows.length, started: 0, ended: 0 };
  for (let at = 0; at < rows.length; at += describesAtOnce) {
    for (const done of await Promise.all(rows.slice(at, at + describesAtOnce).map(sweepOne))) {
      if (done !== 'left') report[done]++;
    }
  }
  return report;
}
