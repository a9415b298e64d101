import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Secrets that computers have as placeholders, and the authorities that they trust for it. */
export const computerSecrets: Migration = {
  name: '0026-computer-secrets',
  async up({ sequelize }) {
    const tables = [
      `CREATE TABLE IF NOT EXISTS computer_secrets (
        computer_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        name VARCHAR(128) NOT NULL,
        variable VARCHAR(128) NOT NULL,
        placeholder VARCHAR(64) NOT NULL,
        hosts TEXT NOT NULL,
        in_url BOOLEAN NOT NULL,
        created_at DATETIME(3) NOT NULL,
        updated_at DATETIME(3) NOT NULL,
        updated_by VARCHAR(40) NOT NULL,
        PRIMARY KEY (computer_id, name),
        UNIQUE KEY computer_secrets_variable (computer_id, variable),
        KEY computer_secrets_space (space_id)
      )`,
      // Numbered, so that of several processes that make the next one only one does. `sealed` is its key.
      `CREATE TABLE IF NOT EXISTS egress_authorities (
        number INT UNSIGNED NOT NULL PRIMARY KEY,
        certificate TEXT NOT NULL,
        sealed BLOB NOT NULL,
        created_at DATETIME(3) NOT NULL,
        signs_from DATETIME(3) NOT NULL,
        not_after DATETIME(3) NOT NULL,
        withdrawn_at DATETIME(3) NULL
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
    const columns = await sequelize.query("SHOW COLUMNS FROM egress_log LIKE 'secret'");
    if (columns[0].length === 0) await sequelize.query('ALTER TABLE egress_log ADD COLUMN secret VARCHAR(128) NULL');
  },
};
