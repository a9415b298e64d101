import type { Migration } from './migrate.ts';

/** Backups of spaces' databases, what restores them, and the accounts with which Atrium itself gets in. */
export const databaseBackups: Migration = {
  name: '0041b-database-backups',
  async up({ sequelize }) {
    // `restores` is the backup from which a database is made; `backup_at` is when its next backup begins. `purpose` is
    // there where the account is neither the space's nor an app's.
    const columns = [
      ['space_databases', 'restores', 'VARCHAR(40) NULL'],
      ['space_databases', 'backup_at', 'DATETIME(3) NULL'],
      ['space_database_accounts', 'purpose', 'VARCHAR(10) NULL'],
    ];
    for (const [table, column, type] of columns) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${table} LIKE '${column}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`);
    }
    const indexes = [
      ['space_databases', 'space_databases_backup', 'INDEX', 'backup_at, id'],
      ['space_databases', 'space_databases_restores', 'INDEX', 'restores'],
      ['space_database_accounts', 'space_database_accounts_purpose', 'UNIQUE INDEX', 'database_id, purpose'],
    ];
    for (const [table, name, kind, parts] of indexes) {
      const [present] = await sequelize.query(`SHOW INDEX FROM ${table} WHERE Key_name = '${name}'`);
      if (present.length === 0) await sequelize.query(`ALTER TABLE ${table} ADD ${kind} ${name} (${parts})`);
    }
    // `due_at` is there for as long as it is being made; the object is one of the drive's.
    await sequelize.query(`CREATE TABLE IF NOT EXISTS space_database_backups (
      id VARCHAR(40) NOT NULL PRIMARY KEY,
      database_id VARCHAR(40) NOT NULL,
      space_id VARCHAR(40) NOT NULL,
      state ENUM('making','kept','failed') NOT NULL,
      object_key VARCHAR(64) NULL,
      size_bytes BIGINT UNSIGNED NULL,
      error_code VARCHAR(80) NULL,
      due_at DATETIME(3) NULL,
      created_by VARCHAR(40) NULL,
      created_at DATETIME(3) NOT NULL,
      ended_at DATETIME(3) NULL,
      KEY space_database_backups_database (database_id, id),
      KEY space_database_backups_space (space_id),
      KEY space_database_backups_due (due_at, id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`);
    // The databases that there are get the accounts of Atrium's own, and a backup.
    // Those are spread over a day, as they will be on all days after it.
    await sequelize.query(`UPDATE space_databases SET due_at = NOW(3), version = version + 1,
        backup_at = NOW(3) + INTERVAL (CRC32(id) % 86400) SECOND
      WHERE state = 'living' AND backup_at IS NULL`);
  },
};
