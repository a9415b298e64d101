import type { QueryInterface } from 'sequelize';
import type { Migration } from './migrate.ts';

const columns = {
  waits_for: "VARCHAR(20) NOT NULL DEFAULT 'nothing'",
  deadline_at: 'DATETIME(3) NULL',
  asked_seq: 'INT UNSIGNED NULL',
  decision: 'VARCHAR(10) NULL',
  answered_at: 'DATETIME(3) NULL',
  begun_at: 'DATETIME(3) NULL',
  effect: 'MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL',
};

/** Tool calls that wait for a client or an approval, and those whose effect is written down before their result. */
export const chatTools: Migration = {
  name: '0006-chat-tools',
  async up(queryInterface) {
    const present = await presentColumns(queryInterface);
    const missing = Object.entries(columns).filter(([name]) => !present.has(name));
    if (missing.length === 0) return;
    const added = missing.map(([name, type]) => `ADD COLUMN ${name} ${type}`).join(', ');
    await queryInterface.sequelize.query(`ALTER TABLE tool_calls ${added}`);
  },
};

async function presentColumns(queryInterface: QueryInterface): Promise<Set<string>> {
  return new Set(Object.keys(await queryInterface.describeTable('tool_calls')));
}
