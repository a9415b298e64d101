import * as areas from '../areas.ts';
import type { AreaSchema } from '../database/areaSchema.ts';
import { sharedSchema } from '../sharedSchema.ts';
import { attendedCompletions, countedAttendance } from './attendedCompletions.ts';
import { driveRevisions } from './driveRevisions.ts';
import { boundedEnvironments, environments, sharedEnvironments } from './environments.ts';
import { fencedSteps } from './fencedSteps.ts';
import { homeSaves, saveFormats } from './homeSaves.ts';
import { images } from './images.ts';
import type { Migration } from './migration.ts';

/** Later changes of tables, in order. A step that has been released is never changed. */
const changes: readonly Migration[] = [
  homeSaves,
  saveFormats,
  {
    name: '0003-computer-labels',
    async up(queryInterface) {
      if ('labels' in (await queryInterface.describeTable('computers'))) return;
      // JSON list: it runs only on hosts that have all of them.
      await queryInterface.sequelize.query('ALTER TABLE computers ADD COLUMN labels TEXT NULL');
    },
  },
  environments,
  sharedEnvironments,
  driveRevisions,
  attendedCompletions,
  fencedSteps,
  boundedEnvironments,
  images,
  countedAttendance,
];

/** Every step of the schema, in order: first the tables of each area, in a new database or where an area is new. */
export const migrations: Migration[] = [
  ...[sharedSchema, ...Object.values<AreaSchema>(areas)].flatMap(({ initial }) => initial ?? []),
  ...changes,
];
