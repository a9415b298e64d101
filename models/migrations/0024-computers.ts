import type { RowDataPacket } from 'mysql2';
import { QueryTypes } from 'sequelize';
import { newId } from '../../base/ids.ts';
import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';
const spacesPerStatement = 500;

/** Computers, the hosts that run them, and a default computer for each space that there is. */
export const computers: Migration = {
  name: '0024-computers',
  async up({ sequelize }) {
    const tables = [
      `CREATE TABLE IF NOT EXISTS computer_hosts (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        address VARCHAR(255) NULL,
        drivers VARCHAR(100) NOT NULL,
        cpu_milli INT UNSIGNED NOT NULL,
        memory_mib INT UNSIGNED NOT NULL,
        max_running INT UNSIGNED NOT NULL,
        seen_at DATETIME(3) NOT NULL
      )`,
      // Limits that are NULL are the operator's defaults. `default_of` is the space's id for its default computer, so
      // that a space has one and no more. `wish` is what somebody wants of it and is still to be done.
      `CREATE TABLE IF NOT EXISTS computers (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        default_of VARCHAR(40) NULL,
        name VARCHAR(200) NOT NULL,
        driver VARCHAR(20) NULL,
        cpu_milli INT UNSIGNED NULL,
        memory_mib INT UNSIGNED NULL,
        disk_mib INT UNSIGNED NULL,
        idle_minutes INT UNSIGNED NULL,
        sealed_env MEDIUMBLOB NULL,
        env_names TEXT NOT NULL,
        status ENUM('created','starting','running','paused','stopping','stopped','error') NOT NULL,
        status_at DATETIME(3) NOT NULL,
        wish ENUM('wake','stop','pause','fork','delete') NULL,
        error_code VARCHAR(80) NULL,
        error_detail VARCHAR(500) NULL,
        generation INT UNSIGNED NOT NULL,
        host_id VARCHAR(40) NULL,
        forked_from VARCHAR(40) NULL,
        created_by VARCHAR(40) NULL,
        created_at DATETIME(3) NOT NULL,
        started_at DATETIME(3) NULL,
        alive_at DATETIME(3) NULL,
        active_at DATETIME(3) NULL,
        used_at DATETIME(3) NULL,
        processes INT UNSIGNED NOT NULL DEFAULT 0,
        ran_ms BIGINT UNSIGNED NOT NULL DEFAULT 0,
        minutes_charged INT UNSIGNED NOT NULL DEFAULT 0,
        deleted_at DATETIME(3) NULL,
        UNIQUE KEY computers_default (default_of),
        KEY computers_space (space_id, id),
        KEY computers_host (host_id, status),
        KEY computers_sweep (status, status_at),
        KEY computers_wish (wish, status_at)
      )`,
      // Homes of deleted computers whose host did not answer: it removes them when it is back.
      `CREATE TABLE IF NOT EXISTS computer_remains (
        computer_id VARCHAR(40) NOT NULL,
        host_id VARCHAR(40) NOT NULL,
        since DATETIME(3) NOT NULL,
        PRIMARY KEY (computer_id, host_id),
        KEY computer_remains_host (host_id)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
    for (;;) {
      const spaces = await sequelize.query<RowDataPacket>(
        `SELECT s.id, s.created_by AS createdBy FROM spaces s LEFT JOIN computers c ON c.default_of = s.id
          WHERE c.id IS NULL AND s.deleted_at IS NULL ORDER BY s.id LIMIT ${spacesPerStatement}`,
        { type: QueryTypes.SELECT },
      );
      if (spaces.length === 0) return;
      const now = new Date();
      const rows = spaces.map(({ id, createdBy }) => [
        newId('computer'),
        id,
        id,
        'Computer',
        '[]',
        'created',
        now,
        0,
        createdBy,
        now,
      ]);
      await sequelize.query(
        `INSERT IGNORE INTO computers
          (id, space_id, default_of, name, env_names, status, status_at, generation, created_by, created_at)
         VALUES ${rows.map(() => '(?)').join(', ')}`,
        { replacements: rows },
      );
    }
  },
};
