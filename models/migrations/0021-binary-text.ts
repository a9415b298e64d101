import type { QueryInterface } from 'sequelize';
import type { Migration } from './migrate.ts';

/**
 * Ids, hashes and names are compared byte by byte, whatever the database's own default is: tables that were made
 * without saying so had taken that. To change a table's collation copies it, and nobody writes to it meanwhile; a table
 * that is right is left alone, so a step that was broken off goes on where it was.
 */
export const binaryText: Migration = {
  name: '0021-binary-text',
  async up(queryInterface) {
    const ours = new Set(productTables);
    for (const table of await tablesWithOtherText(queryInterface)) {
      if (!ours.has(table)) continue; // the database may hold tables of somebody else
      await queryInterface.sequelize.query(`ALTER TABLE ${table} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
    }
  },
};

/** Those that were made without a collation of their own. */
const productTables = [
  'threads',
  'thread_aliases',
  'turns',
  'turn_contexts',
  'turn_segments',
  'model_calls',
  'tool_calls',
  'messages',
  'answer_pieces',
  'operations',
  'idempotency_keys',
  'purge_positions',
  'schema_migrations',
];

async function tablesWithOtherText({ sequelize }: QueryInterface): Promise<string[]> {
  const [rows] = await sequelize.query(
    `SELECT DISTINCT table_name AS name FROM information_schema.columns
      WHERE table_schema = DATABASE() AND collation_name IS NOT NULL AND collation_name NOT IN ('utf8mb4_bin', 'ascii_bin')`,
  );
  return (rows as { name: string }[]).map(({ name }) => name);
}
