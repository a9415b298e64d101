import type { Migration } from './migrate.ts';

// Ids are compared byte by byte, whatever the database's own default is.
const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Mail that is to be sent, and accounts whose address nobody has proven yet. */
export const signIn: Migration = {
  name: '0007-sign-in',
  async up({ sequelize }) {
    const tables = [
      // A row is a mail that has not been sent: it holds links that sign people in, so it is sealed, and goes when it
      // is sent.
      `CREATE TABLE IF NOT EXISTS mails (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        sealed MEDIUMBLOB NOT NULL,
        created_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        KEY mails_created (created_at),
        KEY mails_expires (expires_at)
      )`,
      // Made by an invitation's link that was passed on by hand: whoever proves the address first gets the account for
      // themselves.
      `CREATE TABLE IF NOT EXISTS unproven_users (
        user_id VARCHAR(40) NOT NULL PRIMARY KEY,
        created_at DATETIME(3) NOT NULL
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
