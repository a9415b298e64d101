import type { RowDataPacket } from 'mysql2/promise';
import { newId } from '../../base/ids.ts';
import type { Database } from '../../models/database/database.ts';
import { insertRows } from './rows.ts';

/** The row of an endpoint. */
export function endpointRow({ spaceId, createdBy }: { spaceId: string; createdBy: string }) {
  const now = new Date();
  return {
    ...{ id: newId('webhookEndpoint'), space_id: spaceId, url: 'https://hooks.example.com/', events: 'turn.ended' },
    ...{ enabled: 0, created_by: createdBy, created_at: now, updated_at: now },
  };
}

/** The row of an ended delivery. */
export function deliveryRow({ spaceId, endpointId }: { spaceId: string; endpointId: string }) {
  const id = newId('webhookDelivery');
  const now = new Date();
  const body = JSON.stringify({ type: 'turn.ended', timestamp: now.toISOString(), data: {} });
  return {
    ...{ id, endpoint_id: endpointId, space_id: spaceId, event_id: `turn.ended:${id}`, type: 'turn.ended', body },
    ...{ status: 'failed', attempts: 1, created_at: now, ended_at: now },
  };
}

/** Inserts an endpoint. Removes all but the newest nine before, so that the space has room. */
export async function insertEndpoint(database: Database, of: { spaceId: string; createdBy: string }): Promise<string> {
  const sql = 'SELECT id FROM webhook_endpoints WHERE space_id = ? ORDER BY id DESC LIMIT 1000 OFFSET 9';
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, [of.spaceId]);
  const old = rows.map(({ id }) => id as string);
  if (old.length > 0) await database.pool.query('DELETE FROM webhook_endpoints WHERE id IN (?)', [old]);
  const row = endpointRow(of);
  await insertRows(database, { webhook_endpoints: row });
  return row.id;
}

/** A delivery to the newest endpoint. */
export async function insertDelivery(database: Database, spaceId: string): Promise<string> {
  const sql = 'SELECT id FROM webhook_endpoints WHERE space_id = ? ORDER BY id DESC LIMIT 1';
  const [rows] = await database.pool.query<RowDataPacket[]>(sql, [spaceId]);
  const row = deliveryRow({ spaceId, endpointId: String(rows[0]?.id) });
  await insertRows(database, { webhook_deliveries: row });
  return row.id;
}
