import type { Migration } from './migration.ts';

const changesOf = {
  computers: {
    first: 'base',
    changes: `ADD COLUMN base VARCHAR(20) NULL, -- the root file system that it has of its own; NULL if it has none
      ADD COLUMN environment_version_id VARCHAR(40) NULL, -- the version of an environment that it was made from
      ADD COLUMN restore_began BOOLEAN NOT NULL DEFAULT 0, -- 1: its host may have given it the system that it wishes
      ADD KEY computers_environment (environment_version_id)`,
  },
  home_saves: {
    first: 'base',
    changes: `ADD COLUMN base VARCHAR(20) NULL, -- those of the computer when the save was begun
      ADD COLUMN environment_version_id VARCHAR(40) NULL,
      ADD KEY home_saves_environment (environment_version_id)`,
  },
  computer_hosts: {
    first: 'bases',
    changes: `ADD COLUMN bases VARCHAR(100) NOT NULL DEFAULT '' -- comma-separated; root file systems that it can make`,
  },
};

/** Computers with a root file system of their own. The tables of environments are in their area. */
export const environments: Migration = {
  name: '0004-environments',
  async up(queryInterface) {
    for (const [table, { first, changes }] of Object.entries(changesOf)) {
      if (first in (await queryInterface.describeTable(table))) continue;
      await queryInterface.sequelize.query(`ALTER TABLE ${table} ${changes}`);
    }
  },
};
