import type { AreaSchema } from '../database/areaSchema.ts';
import { initialTables } from '../migrations/migration.ts';

/** MCP servers. */
const initial = initialTables('mcp', [
  // MCP servers whose tools a space uses.
  `CREATE TABLE IF NOT EXISTS mcp_servers (
    id VARCHAR(40) NOT NULL PRIMARY KEY,
    space_id VARCHAR(40) NOT NULL,
    name VARCHAR(40) NOT NULL,
    url VARCHAR(2000) NOT NULL,
    sealed MEDIUMBLOB NOT NULL, -- headers of its requests
    header_names TEXT NOT NULL,
    approval VARCHAR(20) NOT NULL,
    takes_secrets TINYINT NOT NULL DEFAULT 0, -- 1 if an owner lets its tools have values that people type into forms
    tools MEDIUMTEXT NULL, -- JSON: what the server listed last
    listed_at DATETIME(3) NULL,
    failed_at DATETIME(3) NULL,
    failure_code VARCHAR(60) NULL, -- why it could not be asked, for programs
    failure VARCHAR(500) NULL, -- the same for people
    created_by VARCHAR(40) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    UNIQUE KEY mcp_servers_name (space_id, name)
  )`,
]);

export const mcpSchema: AreaSchema = {
  initial,
  ofSpace: ['mcp_servers'],
};
