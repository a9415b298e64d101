import { createAppSweeps } from '../../activities/apps/sweeps.ts';
import { createAutomationSweeps } from '../../activities/automations/sweeps.ts';
import { createBillingSweeps } from '../../activities/billing/sweeps.ts';
import { createBrowserSweeps } from '../../activities/browsers/sweeps.ts';
import { createChatSweeps } from '../../activities/chat/sweeps.ts';
import { createComputerSweeps } from '../../activities/computers/sweeps.ts';
import { createDatabaseSweeps } from '../../activities/databases/sweeps.ts';
import { createDesktopSweeps } from '../../activities/desktops/sweeps.ts';
import { createDriveSweeps } from '../../activities/drive/sweeps.ts';
import { createEgressSweeps } from '../../activities/egress/sweeps.ts';
import { createEnvironmentSweeps } from '../../activities/environments/sweeps.ts';
import { createHostingSweeps } from '../../activities/git/hostingSweeps.ts';
import { createGitSweeps } from '../../activities/git/sweeps.ts';
import { createIdentitySweeps } from '../../activities/identity/sweeps.ts';
import { createMailSweeps } from '../../activities/mail/sweeps.ts';
import { createMain, type MainDeps, sweeperActivities, sweepNames } from '../../activities/main.ts';
import { createOperationSweeps } from '../../activities/operations/sweeps.ts';
import { createSecretSweeps } from '../../activities/secrets/sweeps.ts';
import { createWebhookSweeps } from '../../activities/webhooks/sweeps.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test('The sweeper runs every sweep of every area', () => {
  const { config, database } = environment;
  const deps = { config, database, workflows: {} } as MainDeps;
  const made = [
    createAppSweeps,
    createAutomationSweeps,
    createBillingSweeps,
    createBrowserSweeps,
    createChatSweeps,
    createComputerSweeps,
    createDesktopSweeps,
    createDatabaseSweeps,
    createDriveSweeps,
    createEgressSweeps,
    createGitSweeps,
    createHostingSweeps,
    createIdentitySweeps,
    createMailSweeps,
    createOperationSweeps,
    createSecretSweeps,
    createWebhookSweeps,
    (given: MainDeps) => createEnvironmentSweeps(given, async () => undefined),
  ].flatMap((create) => Object.keys(create(deps)));
  expect(sweepNames.toSorted()).toEqual(made.toSorted());
});

test('Every activity that the sweeper’s schedules name exists', () => {
  const { config, database } = environment;
  expect(createMain({ config, database, workflows: {} } as MainDeps).activities).toMatchObject(
    Object.fromEntries(Object.values(sweeperActivities).flatMap(([name]) => [[name, expect.any(Function)]])),
  );
});
