import type { Migration } from './migrate.ts';

const table = 'DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Links by which anybody reads a thread. */
export const threadShares: Migration = {
  name: '0045b-thread-shares',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS thread_shares (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        thread_id VARCHAR(40) NOT NULL,
        api_key_id VARCHAR(40) NULL,
        token_hash BINARY(32) NULL,
        up_to_ordinal INT UNSIGNED NULL,
        tool_calls TINYINT UNSIGNED NOT NULL,
        file_names TINYINT UNSIGNED NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NULL,
        UNIQUE KEY thread_shares_token (token_hash),
        KEY thread_shares_thread (thread_id, id)
      ) ${table}`,
    );
  },
};
