import type { Migration } from './migrate.ts';

const table = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** What chats of a space begin with, what long threads are shortened by, and whom to tell when a turn ends. */
export const chatContext: Migration = {
  name: '0009-chat-context',
  async up({ sequelize }) {
    const statements = [
      // A limit of NULL is the installation's, or the model's.
      `CREATE TABLE IF NOT EXISTS chat_settings (
        space_id VARCHAR(40) NOT NULL PRIMARY KEY,
        system_prompt MEDIUMTEXT NULL,
        default_model_id VARCHAR(200) NULL,
        max_steps_per_turn INT UNSIGNED NULL,
        max_output_tokens INT UNSIGNED NULL,
        max_context_tokens INT UNSIGNED NULL,
        updated_by VARCHAR(40) NOT NULL,
        updated_at DATETIME(3) NOT NULL
      )`,
      // Each stands for all of its thread up to a turn, in prompts only: the messages stay as they are.
      `CREATE TABLE IF NOT EXISTS thread_summaries (
        thread_id VARCHAR(40) NOT NULL,
        up_to_ordinal INT UNSIGNED NOT NULL,
        turn_id VARCHAR(40) NOT NULL,
        model_id VARCHAR(200) NOT NULL,
        summary MEDIUMTEXT NOT NULL,
        created_at DATETIME(3) NOT NULL,
        PRIMARY KEY (thread_id, up_to_ordinal),
        KEY thread_summaries_turn (turn_id)
      )`,
      // A device's address at its push service, and its keys, are in sealed: whoever has them can write to it.
      `CREATE TABLE IF NOT EXISTS push_subscriptions (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        user_id VARCHAR(40) NOT NULL,
        session_id VARCHAR(40) NULL,
        endpoint_hash BINARY(32) NOT NULL,
        service VARCHAR(255) NOT NULL,
        device_name VARCHAR(200) NULL,
        sealed BLOB NOT NULL,
        created_at DATETIME(3) NOT NULL,
        last_pushed_at DATETIME(3) NULL,
        UNIQUE KEY push_subscriptions_endpoint (endpoint_hash),
        KEY push_subscriptions_user (user_id, created_at)
      )`,
      // One row: the key pair by which push services know this installation.
      `CREATE TABLE IF NOT EXISTS push_keys (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        public_key VARCHAR(200) NOT NULL,
        private_key_sealed BLOB NOT NULL,
        created_at DATETIME(3) NOT NULL
      )`,
      // How far a turn was read to where it rests, by whichever device: what was seen needs no push.
      `CREATE TABLE IF NOT EXISTS turn_receipts (
        turn_id VARCHAR(40) NOT NULL PRIMARY KEY,
        seq INT UNSIGNED NOT NULL
      )`,
    ];
    for (const statement of statements) await sequelize.query(`${statement} ${table}`);
  },
};
