import type { TenantConnection } from './connection.ts';

interface Prepared {
  formatID: number;
  gtrid_length: number;
  bqual_length: number;
  data: string;
}

/** The maximum number of prepared transactions. Beyond it, the oldest end early. */
const mostPrepared = 500;

/** Remembers since when each prepared transaction exists, because the server does not tell. */
export class PreparedTransactions {
  readonly #since = new Map<string, number>();

  /**
   * Rolls back prepared transactions that are too old or too many, and whose connection has ended. They hold locks and
   * server resources, even after a restart. Returns their number.
   */
  async endOld(connection: TenantConnection, ageMs: number, most = mostPrepared): Promise<number> {
    const there = new Set(await preparedOn(connection));
    const now = performance.now();
    for (const xid of this.#since.keys()) if (!there.has(xid)) this.#since.delete(xid);
    for (const xid of there) if (!this.#since.has(xid)) this.#since.set(xid, now);
    // In the order in which they were first seen.
    const tooMany = new Set([...this.#since.keys()].slice(0, Math.max(0, there.size - most)));
    let ended = 0;
    for (const [xid, since] of this.#since) {
      const isOver = now - since > ageMs || tooMany.has(xid);
      if (isOver && (await rollBack(connection, xid))) ended++;
    }
    return ended;
  }
}

async function preparedOn(connection: TenantConnection): Promise<string[]> {
  const sql = connection.isMariaDb ? "XA RECOVER FORMAT='SQL'" : 'XA RECOVER CONVERT XID';
  const rows = await connection.rows<Prepared>(sql);
  return rows.map((prepared) => (connection.isMariaDb ? String(prepared.data) : asLiteral(prepared)));
}

/** False if its connection is still open. */
function rollBack(connection: TenantConnection, xid: string): Promise<boolean> {
  return connection.run(`XA ROLLBACK ${xid}`).then(
    () => true,
    () => false,
  );
}

/** MySQL shows both parts of the id as one hexadecimal number. */
function asLiteral({ formatID, gtrid_length: first, data }: Prepared): string {
  const digits = String(data).replace(/^0x/i, '');
  return `X'${digits.slice(0, first * 2)}',X'${digits.slice(first * 2)}',${Number(formatID)}`;
}
