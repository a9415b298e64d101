import type { Migration } from './migrate.ts';

const table = 'DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** The words of messages and of threads' titles. What was there before is indexed by the sweeper, like all that is new. */
export const chatSearch: Migration = {
  name: '0045-chat-search',
  async up({ sequelize }) {
    // The sweeper reads its keys from the index alone, in the order of threads.
    const due = { messages: 'words_due, thread_id, turn_ordinal, position', threads: 'words_due, id' };
    for (const [name, columns] of Object.entries(due)) {
      const [present] = await sequelize.query(`SHOW COLUMNS FROM ${name} LIKE 'words_due'`);
      if (present.length > 0) continue;
      await sequelize.query(
        `ALTER TABLE ${name} ADD COLUMN words_due TINYINT UNSIGNED NOT NULL DEFAULT 1, ADD KEY ${name}_words (${columns})`,
      );
    }
    const statements = [
      // A number for each text, in the order in which they were indexed. The title of a thread has no message.
      `CREATE TABLE IF NOT EXISTS thread_texts (
        number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        thread_id VARCHAR(40) NOT NULL,
        message_id VARCHAR(200) NOT NULL,
        UNIQUE KEY thread_texts_message (thread_id, message_id)
      ) ${table}`,
      // The words of titles (field 1) and of messages (field 2), by a hash of the space and the thread's owner.
      `CREATE TABLE IF NOT EXISTS thread_words (
        owner BINARY(8) NOT NULL,
        word VARBINARY(64) NOT NULL,
        text_number BIGINT UNSIGNED NOT NULL,
        fields TINYINT UNSIGNED NOT NULL,
        PRIMARY KEY (owner, word, text_number DESC),
        KEY thread_words_text (text_number, word)
      ) ${table}`,
    ];
    for (const statement of statements) await sequelize.query(statement);
  },
};
