import type { Migration } from './migrate.ts';

const added: Record<string, Record<string, string>> = {
  turns: {
    scopes: 'TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL',
    api_key_id: 'VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NULL',
  },
  tool_calls: { scopes: 'TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL' },
};

/**
 * What the credential was allowed that asked for a turn (null is a person signed in), and what a call takes of that.
 */
export const authority: Migration = {
  name: '0020-authority',
  async up({ sequelize }) {
    for (const [table, columns] of Object.entries(added)) {
      const [rows] = await sequelize.query(`SHOW COLUMNS FROM ${table}`);
      const present = new Set((rows as { Field: string }[]).map(({ Field }) => Field));
      const missing = Object.entries(columns).filter(([name]) => !present.has(name));
      if (missing.length === 0) continue;
      await sequelize.query(
        `ALTER TABLE ${table} ${missing.map(([name, type]) => `ADD COLUMN ${name} ${type}`).join(', ')}`,
      );
    }
  },
};
