import type { Database } from '../database/database.ts';
import { select } from '../database/sql.ts';

/** Whoever asks has asked for that just now. */
const looked = 200;

/** What was decided last on a destination, for a space, if that is among its newest; `refusal` is null where it was admitted. */
export async function lastDecision(
  { pool }: Pick<Database, 'pool'>,
  spaceId: string,
  to: { host: string; port: number },
): Promise<{ refusal: string | null } | undefined> {
  const sql = 'SELECT host, port, refusal FROM egress_log WHERE space_id = ? ORDER BY number DESC LIMIT ?';
  const rows = await select(pool, sql, [spaceId, looked]);
  const row = rows.find(({ host, port }) => host === to.host && port === to.port);
  return row && { refusal: row.refusal === null ? null : String(row.refusal) };
}
