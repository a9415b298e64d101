import { ScheduleNotFoundError } from '@temporalio/client';
import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import { actorWorkflowId, appSchedulePrefix } from '../../../temporal/workflowIds.ts';
import { appsOf, manifestOf, scheduleManifest } from '../../builders/app.ts';
import type { ChatUser } from '../../builders/chat.ts';
import type { TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';
import { completedWorkflow, triggerSchedule } from '../histories.ts';
import type { Scenario } from './scenario.ts';

export const appScenarios: Scenario[] = [
  {
    // There is no host for computers here, so every attempt fails.
    name: 'appRun/failed',
    async run(product, user) {
      const apps = appsOf(product, user);
      const { runId } = (await apps.run(await apps.app(manifestOf('make')))).body;
      await apps.ended(runId);
      return actorWorkflowId('appRun', runId);
    },
  },
  {
    name: 'appRun/retried',
    async run(product, user) {
      const apps = appsOf(product, user);
      const id = await apps.app(manifestOf('make', { retry: { attempts: 2, delay: 1 } }));
      const { runId } = (await apps.run(id)).body;
      await apps.ended(runId);
      return actorWorkflowId('appRun', runId);
    },
  },
  {
    name: 'appRun/cancelled',
    async run(product, user) {
      const apps = appsOf(product, user);
      const id = await apps.app(manifestOf('make', { retry: { attempts: 2, delay: 3_600 } }));
      const asked = apps.run(id);
      const run = await waitFor('the first attempt', async () => {
        const [first] = (await apps.runs(id)).body.data;
        return first?.error === null ? undefined : first;
      });
      await apps.cancel(run.id);
      await apps.ended(run.id);
      await asked;
      return actorWorkflowId('appRun', run.id);
    },
  },
  {
    name: 'appScheduleDue/started',
    environment: { ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' },
    run: (product, user) => fire(product, user, () => ({ next_at: new Date(), due_at: new Date() })),
  },
  {
    // The schedule fires, but the row says that nothing is due yet.
    name: 'appScheduleDue/notDue',
    environment: { ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' },
    run: (product, user) => fire(product, user, () => undefined),
  },
  {
    // The tick has come, but its jitter is not over yet.
    name: 'appScheduleDue/jittered',
    environment: { ATRIUM_SWEEP_INTERVAL_SECONDS: '3600' },
    run: (product, user) => fire(product, user, () => ({ next_at: new Date(), due_at: new Date(Date.now() + 12_000) })),
  },
];

/** Fires the schedule of a new app after writing these values to its row, and returns the workflow. */
async function fire(
  product: TestProduct,
  user: ChatUser,
  row: () => { next_at: Date; due_at: Date } | undefined,
): Promise<string> {
  const { config, database } = product.environment;
  const apps = appsOf(product, user);
  const id = await apps.app(scheduleManifest('make', { cron: '0 3 1 1 *' }));
  await apps.pause(id);
  await apps.resume(id);
  const [rows] = await database.pool.query('SELECT id FROM app_schedules');
  const [schedule] = rows as { id: string }[];
  const scheduleId = `${appSchedulePrefix(config.installation)}${schedule?.id}`;
  await waitFor('the schedule', async () => {
    try {
      const now = row();
      if (now !== undefined) await database.pool.query('UPDATE app_schedules SET ?', [now]);
      await triggerSchedule(config, scheduleId);
      return true;
    } catch (error) {
      if (error instanceof ScheduleNotFoundError) return undefined;
      throw error;
    }
  });
  const queue = `TaskQueue = '${mainTaskQueue(config.installation)}'`;
  return completedWorkflow(config, `${queue} AND WorkflowType = 'appScheduleDue'`);
}
