import { takeDueRun } from '../../models/automations/runs.ts';
import type { AutomationDeps } from './deps.ts';
import { createStartAutomationRun } from './startAutomationRun.ts';
import { automationSweeps, createAutomationSweeps } from './sweeps.ts';

/** How far Temporal's clock may be ahead of a worker's. Its tick must not count as too early. */
const clockSkewMs = 2_000;

function createAutomationActivities(deps: AutomationDeps) {
  const { config, database } = deps;
  return {
    /** Moves an automation's schedule on if its tick has come. Returns the run of that tick, to be started. */
    takeDueRun: ({ automationId }: { automationId: string }): Promise<string | undefined> =>
      takeDueRun(database, automationId, { ...config.automations, aheadMs: clockSkewMs }),

    startAutomationRun: createStartAutomationRun(deps),
    ...createAutomationSweeps(deps),
  };
}

export const automations = { create: createAutomationActivities, sweeps: automationSweeps };
