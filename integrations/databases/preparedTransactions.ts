import type { TenantConnection } from './connection.ts';

interface Prepared {
  formatID: number;
  gtrid_length: number;
  bqual_length: number;
  data: string;
}

/** So many may be there at once; what is more goes before its time, the oldest first. */
const mostPrepared = 500;

/** Since when each prepared transaction has been there, as far as this process has looked: the server does not say. */
export class PreparedTransactions {
  readonly #since = new Map<string, number>();

  /**
   * Rolls back those that have been there for longer, or are too many, and whose connection has ended: they hold their
   * locks, and what the server keeps for them, over its restarts too. Returns how many there were.
   */
  async endOld(
    connection: TenantConnection,
    { ageMs, most = mostPrepared }: { ageMs: number; most?: number },
  ): Promise<number> {
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

/** False where it is somebody's who is still connected. */
function rollBack(connection: TenantConnection, xid: string): Promise<boolean> {
  return connection.run(`XA ROLLBACK ${xid}`).then(
    () => true,
    () => false,
  );
}

/** MySQL shows both parts of it as one hexadecimal number. */
function asLiteral({ formatID, gtrid_length: first, data }: Prepared): string {
  const digits = String(data).replace(/^0x/i, '');
  return `X'${digits.slice(0, first * 2)}',X'${digits.slice(first * 2)}',${Number(formatID)}`;
}
