import type { Migration } from './migration.ts';

/** Steps of computers are numbered, so that a late report of one is not taken for the end of a later one. */
export const fencedSteps: Migration = {
  name: '0008-fenced-steps',
  async up(queryInterface) {
    if ('step_number' in (await queryInterface.describeTable('computers'))) return;
    const column = 'step_number INT UNSIGNED NOT NULL DEFAULT 0';
    await queryInterface.sequelize.query(
      `ALTER TABLE computers ADD COLUMN ${column} -- counts the ends of its steps, and the restores asked for`,
    );
  },
};
