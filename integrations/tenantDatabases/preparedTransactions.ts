import type { TenantConnection } from './connection.ts';

interface Prepared {
  formatID: number;
  gtrid_length: number;
  bqual_length: number;
  data: string;
}

/**
 * Rolls back the transactions that were prepared over connections that have ended: they hold their locks until somebody
 * does. Those of open connections are left alone, by the server itself.
 */
export async function rollBackAbandoned(connection: TenantConnection): Promise<void> {
  const sql = connection.isMariaDb ? "XA RECOVER FORMAT='SQL'" : 'XA RECOVER CONVERT XID';
  for (const prepared of await connection.rows<Prepared>(sql)) {
    const xid = connection.isMariaDb ? String(prepared.data) : asLiteral(prepared);
    await connection.run(`XA ROLLBACK ${xid}`).catch(() => undefined); // somebody's, who is still connected
  }
}

/** MySQL shows both parts of it as one hexadecimal number. */
function asLiteral({ formatID, gtrid_length: first, data }: Prepared): string {
  const digits = String(data).replace(/^0x/i, '');
  return `X'${digits.slice(0, first * 2)}',X'${digits.slice(first * 2)}',${Number(formatID)}`;
}
