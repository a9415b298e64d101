import type { Migration } from './migrate.ts';

const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Where a space's requests may go and have gone, and the MCP servers whose tools it uses. */
export const egressAndMcp: Migration = {
  name: '0010-egress-mcp',
  async up({ sequelize }) {
    const tables = [
      `CREATE TABLE IF NOT EXISTS egress_policies (
        space_id VARCHAR(40) NOT NULL PRIMARY KEY,
        allow_list MEDIUMTEXT NOT NULL,
        deny_list MEDIUMTEXT NOT NULL,
        updated_by VARCHAR(40) NOT NULL,
        updated_at DATETIME(3) NOT NULL
      )`,
      // Hosts and never paths: an URL may hold a secret.
      `CREATE TABLE IF NOT EXISTS egress_log (
        number BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        purpose VARCHAR(40) NOT NULL,
        host VARCHAR(255) NOT NULL,
        port SMALLINT UNSIGNED NOT NULL,
        address VARCHAR(64) NULL,
        refusal VARCHAR(200) NULL,
        at DATETIME(3) NOT NULL,
        KEY egress_log_space (space_id, number),
        KEY egress_log_at (at)
      )`,
      // `sealed` are the headers; `tools` what the server listed last.
      `CREATE TABLE IF NOT EXISTS mcp_servers (
        id VARCHAR(40) NOT NULL PRIMARY KEY,
        space_id VARCHAR(40) NOT NULL,
        name VARCHAR(40) NOT NULL,
        url VARCHAR(2000) NOT NULL,
        sealed MEDIUMBLOB NOT NULL,
        header_names TEXT NOT NULL,
        approval VARCHAR(20) NOT NULL,
        tools MEDIUMTEXT NULL,
        listed_at DATETIME(3) NULL,
        failed_at DATETIME(3) NULL,
        failure VARCHAR(500) NULL,
        created_by VARCHAR(40) NOT NULL,
        created_at DATETIME(3) NOT NULL,
        UNIQUE KEY mcp_servers_name (space_id, name)
      )`,
    ];
    for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
  },
};
