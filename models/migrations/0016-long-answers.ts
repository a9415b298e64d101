import type { Migration } from './migrate.ts';

/**
 * Answers that are longer than a row and a packet take. The new column is metadata only (MySQL and MariaDB add it in no
 * time, however many messages there are), and no message is touched.
 */
export const longAnswers: Migration = {
  name: '0016-long-answers',
  async up({ sequelize }) {
    await sequelize.query(`CREATE TABLE IF NOT EXISTS answer_pieces (
      turn_id VARCHAR(40) NOT NULL,
      piece INT UNSIGNED NOT NULL,
      parts MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
      PRIMARY KEY (turn_id, piece)
    )`);
    const [columns] = await sequelize.query("SHOW COLUMNS FROM messages LIKE 'pieces'");
    if (columns.length > 0) return;
    await sequelize.query('ALTER TABLE messages ADD COLUMN pieces INT UNSIGNED NOT NULL DEFAULT 0, ALGORITHM=INSTANT');
  },
};
