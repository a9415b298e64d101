import type { All } from '../base/all.ts';
import { isQuiet } from '../models/installation/installation.ts';
import { createRunQueueActivities } from './apps/index.ts';
import * as areas from './areas.ts';
import { createHeadStarts } from './chat/headStarts.ts';
import { createDatabaseQueueActivities } from './databases/index.ts';
import { createStepQueueActivities } from './environments/index.ts';
import { createGitQueueActivities } from './git/index.ts';
import type { Sweeps } from './sweepEach.ts';
import { OutOfTime } from './sweepTime.ts';
import { createSweepTogether } from './sweepTogether.ts';
import { createWebhookQueueActivities } from './webhooks/index.ts';

type AnyArea = (typeof areas)[keyof typeof areas];

type CreateDeps = All<Parameters<AnyArea['create']>[0]>;

/** The dependencies of the main queue's activities: those that each area asks for. */
export type MainDeps = Omit<CreateDeps, 'headStarts'>;

/** Every activity of the main queue, by the name that workflows call it. */
export type Activities = All<ReturnType<AnyArea['create']>>;
export type GitQueueActivities = ReturnType<typeof createGitQueueActivities>;
export type RunQueueActivities = ReturnType<typeof createRunQueueActivities> &
  ReturnType<typeof createStepQueueActivities>;
export type BackupQueueActivities = ReturnType<typeof createDatabaseQueueActivities>['backup'];
export type LongDatabaseQueueActivities = ReturnType<typeof createDatabaseQueueActivities>['long'];
export type WebhookQueueActivities = ReturnType<typeof createWebhookQueueActivities>;

/** The activities of the queues that every worker polls, and the head starts that their process can make. */
export function createMain(deps: MainDeps) {
  const headStarts = createHeadStarts(deps);
  const all: CreateDeps = { ...deps, headStarts };
  const made = Object.values<{ create(deps: CreateDeps): object }>(areas).map(({ create }) => create(all));
  const activities = Object.assign({}, ...made) as Activities;
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
    runActivities: { ...createRunQueueActivities(deps), ...createStepQueueActivities(deps) },
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

interface SweptArea {
  create: unknown;
  sweeps?: Sweeps<keyof Activities>;
}

const sweepsOf = Object.values<SweptArea>(areas).flatMap(({ sweeps = [] }) => sweeps);

/** The sweeps that each of the schedules runs. */
export const sweeps: Record<keyof typeof sweeperActivities, readonly (keyof Activities)[]> = {
  rescue: sweepsOf.flatMap(({ rescue }) => rescue),
  upkeep: sweepsOf.flatMap(({ upkeep }) => upkeep),
  contents: sweepsOf.flatMap(({ contents = [] }) => contents),
};

export const sweepNames = Object.values(sweeps).flat();

/** They start work that waits while the installation is quiet. */
const quietened: ReadonlySet<string> = new Set(sweepsOf.flatMap(({ quietened = [] }) => quietened));

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
