import type { Migration } from './migrate.ts';

const table = 'DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What holds are sized by, and what was spent on a day as a running sum. */
export const holds: Migration = {
  name: '0014-holds',
  async up({ sequelize }) {
    const statements = [
      `CREATE TABLE IF NOT EXISTS billing_call_sizes (
        space_id VARCHAR(40) NOT NULL,
        model_id VARCHAR(200) NOT NULL,
        kind ENUM('ask','work','aside') NOT NULL,
        base_tokens INT UNSIGNED NOT NULL,
        output_micro BIGINT NULL,
        PRIMARY KEY (space_id, model_id, kind)
      ) ${table}`,
      // What the calls of a day cost, those that run by what they may cost: of a member, and with no member of all.
      `CREATE TABLE IF NOT EXISTS billing_day_use (
        space_id VARCHAR(40) NOT NULL,
        day DATE NOT NULL,
        user_id VARCHAR(40) NOT NULL,
        micro BIGINT NOT NULL,
        PRIMARY KEY (space_id, day, user_id),
        KEY billing_day_use_purge (day)
      ) ${table}`,
      ...['user_id', "''"].map(
        (user) => `INSERT IGNORE INTO billing_day_use (space_id, day, user_id, micro)
          SELECT space_id, day, ${user} AS member, SUM(IF(status = 'open', amount, cost)) FROM billing_holds
           WHERE day >= UTC_DATE() - INTERVAL 7 DAY GROUP BY space_id, day, member`,
      ),
    ];
    for (const statement of statements) await sequelize.query(statement);
  },
};
