import {
  asScheduled,
  type DueAutomation,
  dueAutomations,
  scheduledAutomations,
} from '../../models/automations/automation.ts';
import { pendingRuns, purgeRuns, takeDueRun } from '../../models/automations/runs.ts';
import { automationsToSettle, settleRuns } from '../../models/automations/settle.ts';
import { keepAlive } from '../keepAlive.ts';
import {
  asSwept,
  graceBefore,
  purgeOlder,
  type SweepReport,
  type Sweeps,
  sweepActors,
  sweepEach,
} from '../sweepEach.ts';
import type { AutomationDeps } from './deps.ts';
import { tellPaused } from './tellPaused.ts';

/** Sweeps for automations. The rows are the truth: sweeps find ticks that a schedule in Temporal has missed. */
export function createAutomationSweeps(deps: AutomationDeps) {
  const { config, database, logger, workflows } = deps;
  return {
    /** Starts runs of automations whose tick has come without a signal from a schedule. */
    sweepDueAutomations: (): Promise<SweepReport> =>
      sweepEach<DueAutomation>({
        logger,
        before: graceBefore(config),
        page: (page) => dueAutomations(database, page),
        async look({ id, spaceId }) {
          const runId = await takeDueRun(database, id, { ...config.automations, aheadMs: 0 });
          return runId === undefined
            ? 'left'
            : asSwept(await workflows.startAutomationRun({ id: runId, spaceId }), 'started');
        },
      }),

    /** Starts runs that have no turn yet: their workflow never started, or gave up. */
    sweepAutomationRuns: sweepActors(deps, { rows: pendingRuns, tell: workflows.startAutomationRun }),

    /**
     * Settles runs whose turns have ended: counts failures and costs, and pauses automations that fail again and again.
     */
    async settleAutomationRuns(): Promise<number> {
      using heartbeat = keepAlive();
      const ids = await automationsToSettle(database);
      for (const id of ids) {
        heartbeat.cancelled.throwIfAborted();
        try {
          const { paused } = await settleRuns(database, id);
          if (paused === undefined) continue;
          await workflows.scheduleAutomation({ ...paused, when: null });
          await tellPaused(deps, paused);
        } catch (error) {
          logger.warn({ err: error, automationId: id }, 'The runs of an automation could not be settled.');
        }
      }
      return ids.length;
    },

    /** Compares the schedules in Temporal with the rows. Either may be lost or outdated. */
    async mendAutomationSchedules() {
      using heartbeat = keepAlive();
      const pages = async function* () {
        for await (const page of scheduledAutomations(database)) {
          heartbeat.cancelled.throwIfAborted();
          yield page.map(asScheduled);
        }
      };
      return workflows.mendAutomationSchedules(pages());
    },

    /** Removes deleted automations, and runs past their retention. */
    purgeAutomationRuns: purgeOlder(config.sweeper.recordRetentionMs, (before, onBatch) =>
      purgeRuns(database, before, onBatch),
    ),
  };
}

export const automationSweeps = {
  rescue: ['sweepDueAutomations', 'sweepAutomationRuns', 'settleAutomationRuns'],
  upkeep: ['mendAutomationSchedules', 'purgeAutomationRuns'],
  quietened: ['sweepDueAutomations', 'sweepAutomationRuns'],
} as const satisfies Sweeps<keyof ReturnType<typeof createAutomationSweeps>>;
