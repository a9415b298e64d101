import { isQuiet } from '../models/installation/installation.ts';
import type { AppDeps } from './apps/deps.ts';
import { createAppActivities, createRunQueueActivities } from './apps/index.ts';
import { appSweeps } from './apps/sweeps.ts';
import type { AutomationDeps } from './automations/deps.ts';
import { createAutomationActivities } from './automations/index.ts';
import { automationSweeps } from './automations/sweeps.ts';
import type { BillingDeps } from './billing/deps.ts';
import { createBillingActivities } from './billing/index.ts';
import { billingSweeps } from './billing/sweeps.ts';
import { type BrowserDeps, createBrowserActivities } from './browsers/index.ts';
import { browserSweeps } from './browsers/sweeps.ts';
import type { ChatDeps } from './chat/deps.ts';
import { createHeadStarts, type HeadStarts } from './chat/headStarts.ts';
import { createChatActivities } from './chat/index.ts';
import { chatSweeps } from './chat/sweeps.ts';
import type { ComputerDeps } from './computers/deps.ts';
import { createComputerActivities } from './computers/index.ts';
import { computerSweeps } from './computers/sweeps.ts';
import type { DatabaseDeps } from './databases/deps.ts';
import { createDatabaseActivities, createDatabaseQueueActivities } from './databases/index.ts';
import { databaseSweeps } from './databases/sweeps.ts';
import { createDesktopActivities, type DesktopDeps } from './desktops/index.ts';
import { desktopSweeps } from './desktops/sweeps.ts';
import type { DriveDeps } from './drive/deps.ts';
import { createDriveActivities } from './drive/index.ts';
import { contentSweeps, driveSweeps } from './drive/sweeps.ts';
import { createEgressSweeps, type EgressDeps, egressSweeps } from './egress/sweeps.ts';
import { hostingSweeps } from './git/hostingSweeps.ts';
import { createGitActivities, createGitQueueActivities } from './git/index.ts';
import type { GitDeps } from './git/ordered.ts';
import { gitSweeps } from './git/sweeps.ts';
import { createIdentitySweeps, type IdentityDeps, identitySweeps } from './identity/sweeps.ts';
import type { MailDeps } from './mail/deps.ts';
import { createMailActivities } from './mail/index.ts';
import { mailSweeps } from './mail/sweeps.ts';
import { createOperationActivities } from './operations/index.ts';
import { operationSweeps } from './operations/sweeps.ts';
import { createPushTurn } from './push/pushTurn.ts';
import { createSecretSweeps, type SecretDeps, secretSweeps } from './secrets/sweeps.ts';
import type { Sweeps } from './sweepEach.ts';
import { OutOfTime } from './sweepTime.ts';
import { createSweepTogether } from './sweepTogether.ts';
import type { WebhookDeps } from './webhooks/deps.ts';
import { createWebhookQueueActivities } from './webhooks/index.ts';
import { createWebhookSweeps, webhookSweeps } from './webhooks/sweeps.ts';

/** The dependencies of the main queue's activities: those of all areas. */
export type MainDeps = ChatDeps &
  DriveDeps &
  BillingDeps &
  MailDeps &
  EgressDeps &
  IdentityDeps &
  SecretDeps &
  ComputerDeps &
  DesktopDeps &
  BrowserDeps &
  GitDeps &
  AppDeps &
  AutomationDeps &
  DatabaseDeps &
  WebhookDeps;

/** Every activity of the main queue, by the name that workflows call it. */
function createMainActivities(deps: MainDeps, headStarts: Pick<HeadStarts, 'take' | 'soon'>) {
  return {
    ...createChatActivities(deps, headStarts),
    ...createDriveActivities(deps),
    ...createBillingActivities(deps),
    ...createOperationActivities(deps),
    ...createMailActivities(deps),
    pushTurn: createPushTurn(deps),
    ...createEgressSweeps(deps),
    ...createIdentitySweeps(deps),
    ...createSecretSweeps(deps),
    ...createComputerActivities(deps),
    ...createDesktopActivities(deps),
    ...createBrowserActivities(deps),
    ...createGitActivities(deps),
    ...createAppActivities(deps),
    ...createAutomationActivities(deps),
    ...createDatabaseActivities(deps),
    ...createWebhookSweeps(deps),
  };
}

export type Activities = ReturnType<typeof createMainActivities>;
export type GitQueueActivities = ReturnType<typeof createGitQueueActivities>;
export type RunQueueActivities = ReturnType<typeof createRunQueueActivities>;
export type BackupQueueActivities = ReturnType<typeof createDatabaseQueueActivities>['backup'];
export type LongDatabaseQueueActivities = ReturnType<typeof createDatabaseQueueActivities>['long'];
export type WebhookQueueActivities = ReturnType<typeof createWebhookQueueActivities>;

/** The activities of the queues that every worker polls, and the head starts that their process can make. */
export function createMain(deps: MainDeps) {
  const headStarts = createHeadStarts(deps);
  const activities = createMainActivities(deps, headStarts);
  const { budgetMs } = deps.config.sweeper;
  const together = (names: readonly (keyof Activities)[], patienceMs?: number) =>
    createSweepTogether({ ...deps, budgetMs, patienceMs }, measuredSweeps(deps, names, activities));
  return {
    activities: {
      ...activities,
      sweepTogether: together(sweeps.rescue),
      keepUpTogether: together(sweeps.upkeep),
      readTogether: together(sweeps.contents, contentsPatienceMs),
    },
    gitActivities: createGitQueueActivities(deps),
    runActivities: createRunQueueActivities(deps),
    databaseActivities: createDatabaseQueueActivities(deps),
    webhookActivities: createWebhookQueueActivities(deps),
    headStarts,
  };
}

/**
 * The activities of the sweeper's schedules. A schedule passes its list to its workflow as the argument, so that a
 * running sweep or a saved history keeps the activities that it was started with. The lists are separate so that
 * upkeep, however far behind, never delays a rescue, and reading contents, however large, delays neither.
 */
export const sweeperActivities = {
  rescue: ['sweepTogether'],
  upkeep: ['keepUpTogether'],
  contents: ['readTogether'],
} as const;

/** Longer than the workflow waits, since reading a large object ends by itself. */
const contentsPatienceMs = 24 * 3_600_000;

const areaSweeps = [
  chatSweeps,
  operationSweeps,
  mailSweeps,
  egressSweeps,
  billingSweeps,
  secretSweeps,
  identitySweeps,
  driveSweeps,
  computerSweeps,
  desktopSweeps,
  browserSweeps,
  gitSweeps,
  hostingSweeps,
  appSweeps,
  automationSweeps,
  databaseSweeps,
  webhookSweeps,
] as const satisfies readonly Sweeps<keyof Activities>[];

/** The sweeps of each schedule. */
export const sweeps: Record<keyof typeof sweeperActivities, readonly (keyof Activities)[]> = {
  rescue: areaSweeps.flatMap(({ rescue }) => rescue),
  upkeep: areaSweeps.flatMap(({ upkeep }) => upkeep),
  contents: contentSweeps,
};

export const sweepNames = Object.values(sweeps).flat();

/** Sweeps that start work which must wait while the installation is quiet. */
const quietened: ReadonlySet<string> = new Set<keyof Activities>([
  'sweepMails',
  'sweepDueAppSchedules',
  'sweepDueAutomations',
  'sweepAutomationRuns',
  'sweepWebhookDeliveries',
]);

/** Wraps sweeps so that a meter counts what they do. */
function measuredSweeps({ database, meters }: MainDeps, names: readonly (keyof Activities)[], activities: object) {
  const all = activities as Record<string, () => Promise<unknown>>;
  return Object.fromEntries(
    names.map((name) => [
      name,
      async () => {
        if (quietened.has(name) && (await isQuiet(database))) return 0;
        const done: unknown = await all[name]?.().catch((error: unknown) => {
          if (error instanceof OutOfTime) meters.swept(name, { unfinished: 1 });
          throw error;
        });
        for (const report of [done].flat()) {
          if (typeof report === 'number') meters.swept(name, { done: report });
          else if (typeof report === 'object' && report !== null) meters.swept(name, countsIn(report));
        }
        return done;
      },
    ]),
  );
}

function countsIn(report: object): Record<string, number> {
  return Object.fromEntries(
    Object.entries(report).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  );
}
