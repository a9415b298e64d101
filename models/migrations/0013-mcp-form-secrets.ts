import type { Migration } from './migrate.ts';

/** Whether an MCP server's tools may be given what people type into forms: only where an owner has said so. */
export const mcpFormSecrets: Migration = {
  name: '0013-mcp-form-secrets',
  async up({ sequelize }) {
    const [columns] = await sequelize.query("SHOW COLUMNS FROM mcp_servers LIKE 'takes_secrets'");
    if (columns.length > 0) return;
    await sequelize.query('ALTER TABLE mcp_servers ADD COLUMN takes_secrets TINYINT NOT NULL DEFAULT 0 AFTER approval');
  },
};
