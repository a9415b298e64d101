import type { Migration } from './migrate.ts';

/** The thread that a thread is a copy of: pictures that its tools made are files of that one. */
export const threadForks: Migration = {
  name: '0045c-thread-forks',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM threads LIKE 'forked_from'");
    if (present.length === 0) await sequelize.query('ALTER TABLE threads ADD COLUMN forked_from VARCHAR(40) NULL');
  },
};
