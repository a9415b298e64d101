import type { Migration } from './migrate.ts';

/** What finds the turn of a request by OpenAI's API again, and threads that are kept for a while only. */
export const completions: Migration = {
  name: '0053-completions',
  async up({ sequelize }) {
    await sequelize.query(
      `CREATE TABLE IF NOT EXISTS completion_requests (
        turn_id VARCHAR(40) NOT NULL PRIMARY KEY,
        user_id VARCHAR(40) NOT NULL,
        space_id VARCHAR(40) NOT NULL,
        request_hash BINARY(32) NOT NULL,
        conversation_hash BINARY(32) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        delivered_at DATETIME(3) NULL,
        KEY completion_requests_request (user_id, request_hash, turn_id),
        KEY completion_requests_conversation (user_id, space_id, conversation_hash, turn_id)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin`,
    );
    const [present] = await sequelize.query("SHOW COLUMNS FROM threads LIKE 'expires_at'");
    if (present.length > 0) return;
    await sequelize.query(
      'ALTER TABLE threads ADD COLUMN expires_at DATETIME(3) NULL, ADD KEY threads_expires (expires_at, id)',
    );
  },
};
