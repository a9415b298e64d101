import type { QueryInterface } from 'sequelize';
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

const sharingOf = {
  environments: {
    first: 'shared_at',
    changes: `ADD COLUMN shared_at DATETIME(3) NULL, -- since when all spaces may use it
      ADD KEY environments_shared (shared_at, id),
      ADD KEY environments_base (base)`,
  },
  environment_versions: {
    first: 'waits_for',
    changes: 'ADD COLUMN waits_for VARCHAR(80) NULL -- why the computer of the build cannot run yet',
  },
  computers: {
    first: 'serves_environment_id',
    changes: `ADD COLUMN serves_environment_id VARCHAR(40) NULL, -- requests of the space that name only this environment mean it
      ADD KEY computers_serving (serves_environment_id, space_id)`,
  },
  home_saves: {
    first: 'is_shared',
    changes: `ADD COLUMN is_shared BOOLEAN NOT NULL DEFAULT 0, -- 1: computers of other spaces may begin with it
      ADD KEY home_saves_shared (is_shared)`,
  },
};

/** Computers with a root file system of their own. The tables of environments are in their area. */
export const environments: Migration = {
  name: '0004-environments',
  up: (queryInterface) => addColumns(queryInterface, changesOf),
};

/** Environments that all spaces may use, builds that wait for room, and computers that serve an environment. */
export const sharedEnvironments: Migration = {
  name: '0005-shared-environments',
  up: (queryInterface) => addColumns(queryInterface, sharingOf),
};

const boundsOf = {
  environments: {
    first: 'shared_name',
    changes: `ADD COLUMN shared_name VARCHAR(63) NULL, -- its name when others could last see it
      ADD COLUMN shared_from INT UNSIGNED NULL -- the oldest of its versions that others may use`,
  },
  environment_versions: {
    first: 'api_key_id',
    changes: `ADD COLUMN api_key_id VARCHAR(40) NULL, -- the key that asked for the build; NULL: a person
      ADD COLUMN stored_log_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0 -- what the logs of its steps take as they are stored`,
  },
};

/** What shared environments show others, who asked for builds, and bounds of what builds leave behind. */
export const boundedEnvironments: Migration = {
  name: '0009-bounded-environments',
  async up(queryInterface) {
    await addColumns(queryInterface, boundsOf);
    for (const sql of [
      'UPDATE environments SET shared_name = name WHERE shared_name IS NULL',
      `UPDATE environments SET shared_from = (SELECT MAX(v.number) FROM environment_versions v
        WHERE v.environment_id = environments.id AND v.status = 'ready' AND v.ended_at <= environments.shared_at)
        WHERE shared_at IS NOT NULL AND shared_from IS NULL`,
      `UPDATE environment_steps s JOIN environment_versions v ON v.id = s.version_id SET s.plan = '', s.files = NULL
        WHERE v.status <> 'building'`,
      `UPDATE environment_versions SET stored_log_bytes = (SELECT COALESCE(SUM(COALESCE(LENGTH(s.sealed_log), 0)
        + COALESCE(LENGTH(s.sealed_tail), 0)), 0) FROM environment_steps s WHERE s.version_id = environment_versions.id)
        WHERE status <> 'building'`,
    ]) {
      await queryInterface.sequelize.query(sql);
    }
  },
};

async function addColumns(
  queryInterface: QueryInterface,
  tables: Readonly<Record<string, { first: string; changes: string }>>,
): Promise<void> {
  for (const [table, { first, changes }] of Object.entries(tables)) {
    if (first in (await queryInterface.describeTable(table))) continue;
    await queryInterface.sequelize.query(`ALTER TABLE ${table} ${changes}`);
  }
}
