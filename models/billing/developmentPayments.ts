import { randomBytes } from 'node:crypto';
import type { Database } from '../database/database.ts';
import { execute, select } from '../database/sql.ts';

/** A payment of the development provider: the data that a real provider would keep. */
export interface DevelopmentPayment {
  sessionId: string;
  paymentId: string;
  checkoutId: string;
  spaceId: string;
  amountMinor: number;
  currency: string;
  status: 'open' | 'complete' | 'expired';
  paymentStatus: 'unpaid' | 'paid';
  successUrl: string;
  cancelUrl: string;
  createdAt: Date;
  expiresAt: Date;
}

const fields = `session_id, payment_id, checkout_id, space_id, amount_minor, currency, status, payment_status,
  success_url, cancel_url, created_at, expires_at`;

type New = Omit<DevelopmentPayment, 'sessionId' | 'paymentId' | 'status' | 'paymentStatus' | 'createdAt'>;

/** Stores the development provider's payments in this database. */
export function createDevelopmentPayments(database: Database) {
  async function find(by: 'session_id' | 'payment_id' | 'checkout_id', value: string) {
    const sql = `SELECT ${fields} FROM development_payments WHERE ${by} = ?`;
    const rows = await select<DevelopmentPayment>(database.pool, sql, [value]);
    return rows.map(read)[0];
  }

  return {
    find,

    /** Makes one payment for each checkout, even if it is called repeatedly. */
    async make(fresh: New): Promise<DevelopmentPayment> {
      const random = () => randomBytes(12).toString('hex');
      await execute(
        database.pool,
        `INSERT IGNORE INTO development_payments (session_id, payment_id, checkout_id, space_id, amount_minor, currency,
           status, payment_status, success_url, cancel_url, created_at, expires_at) VALUES (?)`,
        [
          [
            `cs_dev_${random()}`,
            `pi_dev_${random()}`,
            fresh.checkoutId,
            fresh.spaceId,
            fresh.amountMinor,
            fresh.currency,
            'open',
            'unpaid',
            fresh.successUrl,
            fresh.cancelUrl,
            new Date(),
            fresh.expiresAt,
          ],
        ],
      );
      const made = await find('checkout_id', fresh.checkoutId);
      if (made === undefined) throw new Error('The development payment was not kept.');
      return made;
    },

    /** Moves an open payment to its end. False if it was no longer open. */
    async finish(sessionId: string, end: Pick<DevelopmentPayment, 'status' | 'paymentStatus'>): Promise<boolean> {
      const { affectedRows } = await execute(
        database.pool,
        `UPDATE development_payments SET status = ?, payment_status = ?
          WHERE session_id = ? AND status = 'open' AND expires_at > ?`,
        [end.status, end.paymentStatus, sessionId, new Date()],
      );
      return affectedRows === 1;
    },

    async since(after: Date): Promise<DevelopmentPayment[]> {
      const rows = await select<DevelopmentPayment>(
        database.pool,
        // Without the hint the server may sort the whole table if most payments are recent.
        `SELECT ${fields} FROM development_payments FORCE INDEX (development_payments_created)
          WHERE created_at >= ? ORDER BY created_at LIMIT 10000`,
        [after],
      );
      return rows.map(read);
    },

    /** The secret that signs notifications. All processes of the installation share it. */
    async webhookSecret(): Promise<string> {
      const sql = "SELECT value FROM billing_state WHERE name = 'developmentSecret'";
      const rows = await select<{ value: string }>(database.pool, sql);
      return `whsec_${rows[0]?.value ?? ''}`;
    },
  };
}

function read(row: DevelopmentPayment): DevelopmentPayment {
  const status = row.status === 'open' && row.expiresAt.getTime() <= Date.now() ? 'expired' : row.status;
  return { ...row, status };
}
