import type { RowDataPacket } from 'mysql2';
import type { Database } from '../database/database.ts';

/** The state of all spaces' MCP servers, for the operator. */
export interface McpOverview {
  servers: number;
  spaces: number;
  /** Those that failed when they were last asked, the latest first, ten at most. `MCP_REFUSED` wants other headers. */
  failed: { name: string; spaceId: string; code: string | null }[];
}

export async function readMcpOverview({ pool }: Pick<Database, 'pool'>): Promise<McpOverview> {
  const living = 'FROM mcp_servers m JOIN spaces s ON s.id = m.space_id WHERE s.deleted_at IS NULL';
  const [[counts]] = await pool.query<RowDataPacket[]>(
    `SELECT COUNT(*) AS servers, COUNT(DISTINCT m.space_id) AS spaces ${living}`,
  );
  const [failed] = await pool.query<RowDataPacket[]>(
    `SELECT m.name, m.space_id AS spaceId, m.failure_code AS code ${living} AND m.failed_at IS NOT NULL ORDER BY m.failed_at DESC LIMIT 10`,
  );
  return {
    servers: Number(counts?.servers),
    spaces: Number(counts?.spaces),
    failed: failed as McpOverview['failed'],
  };
}
