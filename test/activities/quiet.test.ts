import { MockActivityEnvironment } from '@temporalio/testing';
import type { RowDataPacket } from 'mysql2';
import { createStartAutomationRun } from '../../activities/automations/startAutomationRun.ts';
import { createDelivery } from '../../activities/mail/deliverMail.ts';
import { createDeliverWebhooks } from '../../activities/webhooks/deliverWebhooks.ts';
import { newId } from '../../base/ids.ts';
import { takeDueRun as takeDueAppRun } from '../../models/apps/dueRun.ts';
import { nextRunStep } from '../../models/apps/steps.ts';
import { takeDueRun } from '../../models/automations/runs.ts';
import { countWaiting, renewInstallation, resumeInstallation } from '../../models/installation/installation.ts';
import { insertRows } from '../builders/rows.ts';
import { endpointRow } from '../builders/webhookRows.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

// A restored installation starts nothing that reaches the outside until an operator resumes it.

const hourMs = 3_600_000;
const spaceId = newId('space');
const ago = (ms: number) => new Date(Date.now() - ms);

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
beforeEach(() => renewInstallation(environment.database, 'backup'));
afterAll(() => environment.close());

const rowsOf = async (sql: string, values: unknown[]) =>
  (await environment.database.pool.query<RowDataPacket[]>(sql, values))[0];

async function buildAutomation(nextRunAt: Date): Promise<string> {
  const id = newId('automation');
  const fixed = { space_id: spaceId, user_id: 'usr_1', thread_id: 'thr_1', name: 'n', prompt: 'p', mode: 'agent' };
  const more = { files: '[]', overlap: 'skip', enabled: 1, cron: '0 8 * * *', time_zone: 'UTC' };
  const times = { created_at: ago(99 * hourMs), updated_at: ago(99 * hourMs), next_run_at: nextRunAt };
  await insertRows(environment.database, { automations: { ...fixed, ...more, ...times, id } });
  return id;
}

async function buildAppRun(triggerKind: string): Promise<string> {
  const [id, appId, itemId] = [newId('run'), newId('app'), newId('driveItem')];
  const common = { item_id: itemId, space_id: spaceId, created_at: new Date() };
  const spec = JSON.stringify({ kind: 'process', concurrency: 1, timeoutSeconds: 60 });
  const run = { id, app_id: appId, component: 'run', spec, trigger_kind: triggerKind, user_id: 'usr_1' };
  await insertRows(environment.database, {
    apps: { ...common, id: appId, live: 1, manifest: '{}', manifest_tag: 'one', created_by: 'usr_1' },
    app_runs: { ...common, ...run, status: 'queued', active: 1, attempt: 0, is_started: 0 },
  });
  return id;
}

test('A due automation waits until the installation resumes, and its missed run is listed then', async () => {
  const { database } = environment;
  const limits = { catchUpMs: 12 * hourMs, maxRunsPerDay: 10, aheadMs: 0 };
  const due = ago(50 * hourMs);
  due.setMilliseconds(0);
  const id = await buildAutomation(due);
  expect(await takeDueRun(database, id, limits)).toBeUndefined();
  expect(await rowsOf('SELECT next_run_at AS at FROM automations WHERE id = ?', [id])).toEqual([{ at: due }]);
  expect(await countWaiting(database, new Date())).toMatchObject({ automations: 1 });
  expect(await resumeInstallation(database)).toBe(true);
  expect(await resumeInstallation(database)).toBe(false);
  await takeDueRun(database, id, { ...limits, catchUpMs: 0 });
  expect(await rowsOf('SELECT status, code FROM automation_runs WHERE automation_id = ?', [id])).toEqual([
    { status: 'skipped', code: 'MISSED' },
  ]);
});

test('A manual run of an automation waits', async () => {
  const { database } = environment;
  const id = await buildAutomation(new Date(Date.now() + hourMs));
  const runId = newId('automationRun');
  const run = { id: runId, automation_id: id, space_id: spaceId, kind: 'manual', trigger_key: runId };
  await insertRows(database, { automation_runs: { ...run, status: 'pending', created_at: new Date() } });
  // The activity gets no workflows to start the run with, and needs none.
  await createStartAutomationRun({ database } as never)({ runId });
  expect(await rowsOf('SELECT status FROM automation_runs WHERE id = ?', [runId])).toEqual([{ status: 'pending' }]);
});

test('App schedules and app runs of webhooks wait, but app runs that people request do not', async () => {
  const { database } = environment;
  const clock = { cron: '0 * * * *', time_zone: 'UTC', jitter_seconds: 0, enabled: 1 };
  const id = newId('appSchedule');
  const due = ago(1_000);
  due.setMilliseconds(0);
  const times = { next_at: due, due_at: due, created_at: ago(9 * hourMs) };
  const its = { item_id: 'itm_1', app_id: 'app_1', space_id: spaceId, component: 'c', failures: 0, version: 1 };
  await insertRows(database, { app_schedules: { ...clock, ...times, ...its, id } });
  expect(await takeDueAppRun(environment, id, { catchUpMs: hourMs, aheadMs: 0 })).toEqual({});
  expect(await rowsOf('SELECT due_at AS at FROM app_schedules WHERE id = ?', [id])).toEqual([{ at: due }]);

  const limits = { runsPerSpace: 10 };
  const [webhook, request] = [await buildAppRun('webhook'), await buildAppRun('request')];
  expect(await nextRunStep(database, webhook, limits)).toEqual({ do: 'watch', waitMs: 60_000 });
  expect(await nextRunStep(database, request, limits)).toMatchObject({ do: 'attempt' });
  await resumeInstallation(database);
  expect(await nextRunStep(database, webhook, limits)).toMatchObject({ do: 'attempt' });
});

test('Webhook deliveries and mail wait and are retried after a minute', async () => {
  const { config, database } = environment;
  const endpoint = endpointRow({ spaceId, createdBy: 'usr_1' });
  await insertRows(database, { webhook_endpoints: endpoint });
  const activity = new MockActivityEnvironment();
  const deliver = createDeliverWebhooks({ config, database } as never);
  expect(await activity.run(deliver, { endpointId: endpoint.id })).toEqual({ do: 'watch', waitMs: 60_000 });
  const { deliverMail } = createDelivery({ database } as never);
  await expect(activity.run(deliverMail, 'mai_1')).rejects.toMatchObject({
    type: 'INSTALLATION_QUIET',
    nextRetryDelay: 60_000,
    nonRetryable: false,
  });
});
