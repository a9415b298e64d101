import type { Migration } from './migration.ts';

/** Turns of OpenAI's API stop when their client has left. */
export const attendedCompletions: Migration = {
  name: '0007-attended-completions',
  async up(queryInterface) {
    if ('attended_until' in (await queryInterface.describeTable('completion_requests'))) return;
    await queryInterface.sequelize.query(
      `ALTER TABLE completion_requests
        ADD COLUMN attended_until DATETIME(3) NULL, -- when its turn stops unless its client is there; NULL: never
        ADD COLUMN attended_by VARCHAR(40) NULL -- the connection of the client
      `,
    );
  },
};

/** Several connections may wait for the answer of one turn, which stops when the last one has left. */
export const countedAttendance: Migration = {
  name: '0011-counted-attendance',
  async up(queryInterface) {
    if ('attending' in (await queryInterface.describeTable('completion_requests'))) return;
    await queryInterface.sequelize.query(
      `ALTER TABLE completion_requests
        DROP COLUMN attended_by,
        ADD COLUMN attending INT UNSIGNED NOT NULL DEFAULT 1 -- counts the connections of its clients
      `,
    );
  },
};
