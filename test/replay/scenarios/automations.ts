import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { automationRunWorkflowId } from '../../../temporal/workflowIds.ts';
import { automationsOf } from '../../builders/automations.ts';
import { completedWorkflow } from '../histories.ts';
import type { Scenario } from './scenario.ts';

export const automationScenarios: Scenario[] = [
  {
    name: 'automationRun/started',
    async run(_product, user) {
      const own = automationsOf(user);
      return automationRunWorkflowId((await own.run((await own.make()).id)).id);
    },
  },
  {
    // Started by the schedule alone, because the sweeper does not run.
    name: 'automationDue/started',
    environment: { ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' },
    async run({ environment: { config } }, user) {
      await automationsOf(user).make({ schedule: { at: new Date(Date.now() + 2_000).toISOString() } });
      const queue = `TaskQueue = '${mainTaskQueue(config.installation)}'`;
      return completedWorkflow(config, `${queue} AND WorkflowType = 'automationDue'`);
    },
  },
  {
    // The schedule fires, but the row says that nothing is due yet.
    name: 'automationDue/notDue',
    environment: { ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' },
    async run({ environment: { config, database } }, user) {
      await automationsOf(user).make({ schedule: { at: new Date(Date.now() + 4_000).toISOString() } });
      await database.pool.query("UPDATE automations SET next_run_at = '2040-01-01'");
      const queue = `TaskQueue = '${mainTaskQueue(config.installation)}'`;
      return completedWorkflow(config, `${queue} AND WorkflowType = 'automationDue'`);
    },
  },
];
