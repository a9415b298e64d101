import {
  asScheduled,
  type DueAutomation,
  dueAutomations,
  scheduledAutomations,
} from '../../models/automations/automation.ts';
import { type PendingRun, pendingRuns, purgeRuns, takeDueRun } from '../../models/automations/runs.ts';
import { automationsToSettle, settleRuns } from '../../models/automations/settle.ts';
import { keepAlive } from '../keepAlive.ts';
import { asSwept, type SweepReport, type Sweeps, sweepEach } from '../sweepEach.ts';
import type { AutomationDeps } from './deps.ts';
import { tellPaused } from './tellPaused.ts';

/** What the sweeper does for automations. Rows are the truth: whatever a schedule in Temporal has missed is found here. */
export function createAutomationSweeps(deps: AutomationDeps) {
  const { config, database, logger, workflows } = deps;
  const before = () => new Date(Date.now() - config.sweeper.graceSeconds * 1_000);

  return {
    /** Automations whose tick has come, and no schedule has told of it. */
    sweepDueAutomations: (): Promise<SweepReport> =>
      sweepEach<DueAutomation>({
        logger,
        before: before(),
        page: (page) => dueAutomations(database, page),
        async look({ id, spaceId }) {
          const runId = await takeDueRun(database, id, { ...config.automations, aheadMs: 0 });
          return runId === undefined
            ? 'left'
            : asSwept(await workflows.startAutomationRun({ id: runId, spaceId }), 'started');
        },
      }),

    /** Runs that have no turn yet: their workflow was never started, or has given up. */
    sweepAutomationRuns: (): Promise<SweepReport> =>
      sweepEach<PendingRun>({
        logger,
        before: before(),
        page: (page) => pendingRuns(database, page),
        look: async (run) => asSwept(await workflows.startAutomationRun(run), 'started'),
      }),

    /** Runs whose turns have ended: counts failures and costs, and pauses what fails again and again. */
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

    /** Compares the schedules in Temporal with the rows: either may have been lost, or be behind. */
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

    /** Deleted automations, and runs past their retention. */
    async purgeAutomationRuns(): Promise<number> {
      using heartbeat = keepAlive();
      const oldest = new Date(Date.now() - config.sweeper.recordRetentionMs);
      return purgeRuns(database, oldest, () => heartbeat.cancelled.throwIfAborted());
    },
  };
}

export const automationSweeps = {
  rescue: ['sweepDueAutomations', 'sweepAutomationRuns', 'settleAutomationRuns'],
  upkeep: ['mendAutomationSchedules', 'purgeAutomationRuns'],
} as const satisfies Sweeps<keyof ReturnType<typeof createAutomationSweeps>>;
