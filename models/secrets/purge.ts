import type { Database } from '../database.ts';

/** What of a deleted space goes with it. */
const tables = [
  'DELETE FROM secrets WHERE space_id = ?',
  'DELETE FROM dynamic_secrets WHERE space_id = ?',
  'DELETE FROM invitations WHERE space_id = ?',
  'DELETE FROM egress_policies WHERE space_id = ?',
  'DELETE FROM egress_log WHERE space_id = ?',
  'DELETE FROM mcp_servers WHERE space_id = ?',
  'DELETE FROM audit_entries WHERE space_id = ?',
];

/** Removes a deleted space's secrets, invitations, egress rules, MCP servers and audit log. Safe to run again. */
export async function purgeSpaceSecrets(database: Database, spaceId: string): Promise<void> {
  for (const statement of tables) await database.pool.query(statement, [spaceId]);
}
