import type { Migration } from './migrate.ts';

/** Headers in which a secret is sent beside the usual ones; an older process names none. */
export const computerSecretHeaders: Migration = {
  name: '0028-computer-secret-headers',
  async up({ sequelize }) {
    const [present] = await sequelize.query("SHOW COLUMNS FROM computer_secrets LIKE 'headers'");
    if (present.length === 0) await sequelize.query('ALTER TABLE computer_secrets ADD COLUMN headers TEXT NULL');
  },
};
