import type { AreaSchema } from '../database/areaSchema.ts';
import { execute } from '../database/sql.ts';
import { initialTables } from '../migrations/migration.ts';

const initial = initialTables('environments', [
  // What computers can begin with, as people define it.
  `CREATE TABLE IF NOT EXISTS environments (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(63) NOT NULL, -- unique among those of the space that are not deleted
    base VARCHAR(63) NOT NULL, -- debian, agents, or the id of an environment
    steps MEDIUMTEXT NOT NULL, -- JSON
    warnings TEXT NOT NULL, -- JSON list
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    deleted_at DATETIME(3) NULL, -- its row stays while a computer or a save names one of its versions
    KEY environments_space (space_id, deleted_at, id)
  )`,
  // Each build of an environment. When it is ready, its save is what computers begin with.
  `CREATE TABLE IF NOT EXISTS environment_versions (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    environment_id VARCHAR(40) NOT NULL,
    number INT UNSIGNED NOT NULL,
    status ENUM('building','ready','failed','cancelled') NOT NULL,
    base VARCHAR(63) NOT NULL, -- that of the environment when the build began
    steps MEDIUMTEXT NOT NULL, -- JSON; those of the environment, behind those of its base if that is a template
    without_cache BOOLEAN NOT NULL,
    save_id VARCHAR(40) NULL, -- what is built so far
    env MEDIUMTEXT NOT NULL, -- JSON; this and the next two are for the processes of its computers
    user_name VARCHAR(65) NULL, -- NULL: root
    workdir VARCHAR(1024) NULL, -- NULL: the home
    operation_id VARCHAR(40) NOT NULL,
    error_code VARCHAR(80) NULL,
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    let_go_at DATETIME(3) NULL, -- since when it is not offered; it stays while a computer or a save names it
    UNIQUE KEY environment_versions_number (environment_id, number),
    KEY environment_versions_space (space_id),
    KEY environment_versions_save (save_id),
    KEY environment_versions_sweep (status, created_at, id),
    KEY environment_versions_old (let_go_at, id)
  )`,
  // The steps of a build that change files. Each ends with a save.
  `CREATE TABLE IF NOT EXISTS environment_steps (
    version_id VARCHAR(40) NOT NULL,
    number INT UNSIGNED NOT NULL, -- its place among all steps of the version, from 1; 0: it makes the base
    space_id VARCHAR(40) NOT NULL,
    digest CHAR(64) NOT NULL, -- of everything that its result depends on
    status ENUM('waiting','running','ran','done','kept','failed') NOT NULL, -- ran: it is not saved yet
    plan MEDIUMTEXT NOT NULL, -- JSON; what it does, and with which variables, user and folder
    files MEDIUMTEXT NULL, -- JSON; the files of the drive that it copies
    generation INT UNSIGNED NULL, -- of the computer that runs it
    exit_code INT NULL,
    started_at DATETIME(3) NULL,
    ended_at DATETIME(3) NULL,
    log_bytes BIGINT UNSIGNED NULL,
    sealed_log MEDIUMBLOB NULL,
    sealed_tail BLOB NULL, -- the end of the output of a step that failed
    PRIMARY KEY (version_id, number),
    KEY environment_steps_space (space_id)
  )`,
  // Saves that are the result of steps, so that these need not run again.
  `CREATE TABLE IF NOT EXISTS environment_layers (
    space_id VARCHAR(40) NOT NULL,
    digest CHAR(64) NOT NULL,
    save_id VARCHAR(40) NOT NULL,
    used_at DATETIME(3) NOT NULL,
    PRIMARY KEY (space_id, digest),
    KEY environment_layers_save (save_id),
    KEY environment_layers_used (used_at)
  )`,
]);

/** The saves of versions and layers go with those of computers. Saves of other spaces, which were shared, stay. */
export const environmentsSchema: AreaSchema = {
  initial,
  ofSpace: ['environment_layers', 'environment_steps', 'environment_versions', 'environments'],
  /** A shared save that only this space needed belongs to nothing now. A sweep looks. */
  async finish({ pool }) {
    await execute(pool, 'UPDATE home_saves SET loose_at = ? WHERE is_shared = 1', [new Date()]);
  },
};
