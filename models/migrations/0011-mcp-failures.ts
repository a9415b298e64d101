import type { Migration } from './migrate.ts';

/** Why an MCP server could not be asked, for programs: beside the sentence for people. */
export const mcpFailures: Migration = {
  name: '0011-mcp-failures',
  async up({ sequelize }) {
    const [columns] = await sequelize.query("SHOW COLUMNS FROM mcp_servers LIKE 'failure_code'");
    if (columns.length > 0) return;
    await sequelize.query('ALTER TABLE mcp_servers ADD COLUMN failure_code VARCHAR(60) NULL AFTER failed_at');
  },
};
