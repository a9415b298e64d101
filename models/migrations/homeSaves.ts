import { type Migration, tableOptions } from './migration.ts';

const tables = [
  // The saved homes of computers. A save is the change since its parent, or without one (a base) the whole home.
  `CREATE TABLE IF NOT EXISTS home_saves (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NOT NULL, -- whose home it was
    parent_id VARCHAR(40) NULL,
    base_id VARCHAR(40) NOT NULL, -- where its chain begins; its own id for a base
    replaces_id VARCHAR(40) NULL, -- the head of the computer when the save was begun
    host_id VARCHAR(40) NOT NULL, -- the host that makes it; empty if it is given up
    generation INT UNSIGNED NOT NULL, -- of the computer when the save was begun
    format ENUM('btrfs','tar') NULL, -- this and the next three are known once the host has taken it
    uid INT UNSIGNED NULL, -- the user of the computer on its host; NULL if it had none of its own
    taken_at DATETIME(3) NULL,
    home_bytes BIGINT UNSIGNED NULL,
    stored_bytes BIGINT UNSIGNED NOT NULL DEFAULT 0,
    pieces INT UNSIGNED NULL, -- their number; NULL until all are stored
    loose_at DATETIME(3) NULL, -- since when it may belong to nothing; a sweep looks and removes it
    created_at DATETIME(3) NOT NULL,
    KEY home_saves_space (space_id),
    KEY home_saves_computer (computer_id, host_id),
    KEY home_saves_host (host_id, pieces),
    KEY home_saves_parent (parent_id),
    KEY home_saves_base (base_id),
    KEY home_saves_loose (loose_at, id)
  )`,
  // The objects of a save, in order.
  `CREATE TABLE IF NOT EXISTS home_save_pieces (
    save_id VARCHAR(40) NOT NULL,
    number INT UNSIGNED NOT NULL,
    space_id VARCHAR(40) NOT NULL,
    object_key VARCHAR(64) NOT NULL,
    stored_bytes BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (save_id, number),
    KEY home_save_pieces_space (space_id)
  )`,
  // Names of saves, and orders to make them. A save with a name is kept.
  `CREATE TABLE IF NOT EXISTS computer_snapshots (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    computer_id VARCHAR(40) NOT NULL,
    name VARCHAR(200) NOT NULL,
    save_id VARCHAR(40) NULL, -- NULL until it is made
    failed_code VARCHAR(80) NULL, -- why it could not be made
    created_by VARCHAR(40) NULL, -- NULL if Atrium made it
    created_at DATETIME(3) NOT NULL,
    KEY computer_snapshots_space (space_id, id),
    KEY computer_snapshots_computer (computer_id, id),
    KEY computer_snapshots_save (save_id)
  )`,
];

const changesOf = {
  computers: {
    first: 'home_save_id',
    changes: `ADD COLUMN home_save_id VARCHAR(40) NULL, -- the head: the save that its home equals as of home_saved_at
      ADD COLUMN home_saved_at DATETIME(3) NULL,
      ADD COLUMN home_save_failed VARCHAR(80) NULL, -- why its home cannot be saved now
      ADD COLUMN wakes_after_move BOOLEAN NOT NULL DEFAULT 0,
      ADD COLUMN restores_id VARCHAR(40) NULL, -- with the wish to be restored: the snapshot whose home it gets
      MODIFY COLUMN wish ENUM('wake','stop','pause','fork','delete','move','restore') NULL,
      ADD KEY computers_head (home_save_id),
      ADD KEY computers_restores (restores_id)`,
  },
  computer_hosts: {
    first: 'is_cordoned',
    changes: `ADD COLUMN is_cordoned BOOLEAN NOT NULL DEFAULT 0, -- 1: it gets no further computers
      ADD COLUMN labels TEXT NULL -- comma-separated, for people`,
  },
};

/** Homes that outlive the machine that they are on. */
export const homeSaves: Migration = {
  name: '0001-home-saves',
  async up(queryInterface) {
    const { sequelize } = queryInterface;
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
    for (const [table, { first, changes }] of Object.entries(changesOf)) {
      if (first in (await queryInterface.describeTable(table))) continue;
      await sequelize.query(`ALTER TABLE ${table} ${changes}`);
    }
  },
};

/** How hosts save homes, and an index of the snapshots that are still to be made. */
export const saveFormats: Migration = {
  name: '0002-save-formats',
  async up(queryInterface) {
    const { sequelize } = queryInterface;
    if (!('save_format' in (await queryInterface.describeTable('computer_hosts')))) {
      // How the host saves homes. NULL if it has not said so.
      await sequelize.query("ALTER TABLE computer_hosts ADD COLUMN save_format ENUM('btrfs','tar') NULL");
    }
    const indexes = (await queryInterface.showIndex('computer_snapshots')) as { name: string }[];
    if (indexes.some(({ name }) => name === 'computer_snapshots_making')) return;
    await sequelize.query(`ALTER TABLE computer_snapshots DROP KEY computer_snapshots_save,
      ADD KEY computer_snapshots_making (save_id, failed_code, created_at)`);
  },
};
