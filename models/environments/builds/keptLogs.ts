import type { Transaction } from 'sequelize';
import { execute, select } from '../../database/sql.ts';
import type { Version } from '../version.ts';

/** What the logs of all builds of a space take together, as they are stored. */
const mostBytes = 256 * 1_048_576;

/**
 * Counts what a step of a build that is locked stores of its output. The logs of the oldest builds go once those of the
 * space take too much.
 */
export async function countLog(
  tx: Transaction,
  { id, spaceId }: Version,
  bytes: number,
  most = mostBytes,
): Promise<void> {
  if (bytes === 0) return;
  await execute(tx, 'UPDATE environment_versions SET stored_log_bytes = stored_log_bytes + ? WHERE id = ?', [
    bytes,
    id,
  ]);
  const sql = `SELECT id, status, stored_log_bytes FROM environment_versions
    WHERE space_id = ? AND stored_log_bytes > 0 ORDER BY created_at, id`;
  const rows = await select<{ id: string; status: string; storedLogBytes: number }>(tx, sql, [spaceId]);
  let all = rows.reduce((sum, { storedLogBytes }) => sum + Number(storedLogBytes), 0);
  // Builds that run are locked by others.
  for (const old of rows.filter(({ status }) => status !== 'building')) {
    if (all <= most) return;
    await forgetLogs(tx, old.id);
    all -= Number(old.storedLogBytes);
  }
}

async function forgetLogs(tx: Transaction, versionId: string): Promise<void> {
  const sql = 'UPDATE environment_steps SET sealed_log = NULL, sealed_tail = NULL WHERE version_id = ?';
  await execute(tx, sql, [versionId]);
  await execute(tx, 'UPDATE environment_versions SET stored_log_bytes = 0 WHERE id = ?', [versionId]);
}
