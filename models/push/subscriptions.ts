import { createHash, ECDH } from 'node:crypto';
import type { Transaction } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Envelope, systemScope } from '../../crypto/envelope.ts';
import { deleteByIds } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { type Page, type PageRequest, readPage } from '../database/pages.ts';
import { execute, select } from '../database/sql.ts';
import { forgetDevices, hasDevices } from './devices.ts';

/** A browser's subscription: the address to send to, and keys that only this browser can decrypt with. */
export interface PushTarget {
  endpoint: string;
  keys: { p256dh: string; auth: string };
}

/** A device as its owner sees it. */
export interface PushDevice {
  id: string;
  deviceName: string | null;
  /** The push service's host. */
  service: string;
  createdAt: Date;
  lastPushedAt: Date | null;
}

/** A user's oldest subscriptions are removed for new ones. */
const maxDevices = 30;
const authBytes = 16;
const columns = 'id, device_name, service, created_at, last_pushed_at';

/**
 * The devices that receive push notifications. Addresses and keys are sealed, since anyone who has them can send to the
 * device.
 */
export function createPushSubscriptions(database: Database, envelope: Envelope) {
  async function find(id: string): Promise<PushDevice> {
    const [row] = await select<PushDevice>(database.pool, `SELECT ${columns} FROM push_subscriptions WHERE id = ?`, [
      id,
    ]);
    if (row === undefined) throw notFound('subscription');
    return row;
  }

  return {
    /** Adds a device, or finds it by its endpoint. Then its keys and owner are replaced. */
    async add(
      owner: { userId: string; sessionId: string | null },
      target: PushTarget,
      deviceName: string | null,
    ): Promise<PushDevice> {
      const { host } = checkTarget(target);
      const endpointHash = createHash('sha256').update(target.endpoint).digest();
      const write = async (tx: Transaction) => {
        const known = await select<{ id: string }>(
          tx,
          'SELECT id FROM push_subscriptions WHERE endpoint_hash = ? FOR UPDATE',
          [endpointHash],
        );
        const subscriptionId = known[0]?.id ?? newId('pushSubscription');
        const sealed = await envelope.seal(
          systemScope,
          sealContext(subscriptionId),
          Buffer.from(JSON.stringify(target)),
        );
        const row = {
          userId: owner.userId,
          sessionId: owner.sessionId,
          service: host.slice(0, 255),
          deviceName,
          sealed,
        };
        if (known.length > 0) {
          await execute(tx, 'UPDATE push_subscriptions SET ? WHERE id = ?', [row, subscriptionId]);
        } else {
          await execute(tx, 'INSERT INTO push_subscriptions SET ?', [
            { id: subscriptionId, endpointHash, createdAt: new Date(), ...row },
          ]);
        }
        const extra = await select<{ id: string }>(
          tx,
          'SELECT id FROM push_subscriptions WHERE user_id = ? ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET ?',
          [owner.userId, maxDevices],
        );
        for (const { id: oldest } of extra) await execute(tx, 'DELETE FROM push_subscriptions WHERE id = ?', [oldest]);
        return subscriptionId;
      };
      const id = await transaction(database, write, { retryDuplicates: true });
      forgetDevices(database, owner.userId);
      return find(id);
    },

    async list(userId: string, page: PageRequest): Promise<Page<PushDevice>> {
      const sql = `SELECT ${columns} FROM push_subscriptions WHERE user_id = ?`;
      return readPage(database, page, { sql, values: [userId], by: 'id', order: 'desc' });
    },

    /** Throws 404 if the user has no such subscription. */
    async remove(userId: string, id: string): Promise<void> {
      const sql = 'DELETE FROM push_subscriptions WHERE id = ? AND user_id = ?';
      const { affectedRows } = await execute(database.pool, sql, [id, userId]);
      if (affectedRows === 0) throw notFound('subscription');
    },

    /** The subscriptions to push to, without those whose session was revoked. */
    async idsOf(userId: string): Promise<string[]> {
      if (!(await hasDevices(database, userId))) return [];
      const sql = `SELECT p.id FROM push_subscriptions p LEFT JOIN sessions s ON s.id = p.session_id
          WHERE p.user_id = ? AND s.revoked_at IS NULL ORDER BY p.id LIMIT ?`;
      const rows = await select<{ id: string }>(database.pool, sql, [userId, maxDevices]);
      return rows.map(({ id }) => id);
    },

    /** The address and keys. Undefined if the subscription no longer belongs to the user. */
    async open(userId: string, id: string): Promise<PushTarget | undefined> {
      const sql = `SELECT p.sealed FROM push_subscriptions p LEFT JOIN sessions s ON s.id = p.session_id
          WHERE p.id = ? AND p.user_id = ? AND s.revoked_at IS NULL`;
      const [row] = await select<{ sealed: Buffer }>(database.pool, sql, [id, userId]);
      if (row === undefined) return undefined;
      const opened = await envelope.open(systemScope, sealContext(id), row.sealed);
      return JSON.parse(opened.toString('utf8')) as PushTarget;
    },

    async markPushed(id: string): Promise<void> {
      await execute(database.pool, 'UPDATE push_subscriptions SET last_pushed_at = UTC_TIMESTAMP(3) WHERE id = ?', [
        id,
      ]);
    },

    /** Removes a device after the push service said that it is gone. */
    async forget(id: string): Promise<void> {
      await execute(database.pool, 'DELETE FROM push_subscriptions WHERE id = ?', [id]);
    },

    /** Removes subscriptions of revoked sessions. They are already unused. */
    async purgeRevoked(onBatch?: () => void): Promise<number> {
      // A DELETE with a subquery would read the whole table.
      return deleteByIds(
        database,
        'push_subscriptions',
        `SELECT p.id FROM sessions s JOIN push_subscriptions p ON p.session_id = s.id
          WHERE s.revoked_at IS NOT NULL LIMIT ?`,
        [],
        onBatch,
      );
    },
  };
}

function sealContext(id: string): string {
  return `push_subscriptions/${id}`;
}

/** Throws 422 `INVALID_SUBSCRIPTION` for a subscription that no push could be sent with. */
function checkTarget({ endpoint, keys }: PushTarget): URL {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined) throw invalid('/endpoint', 'is no URL');
  if (!isPoint(keys.p256dh)) throw invalid('/keys/p256dh', 'is not a public key on the curve P-256');
  if (Buffer.from(keys.auth, 'base64url').length !== authBytes) throw invalid('/keys/auth', 'is not 16 bytes');
  return url;
}

function isPoint(key: string): boolean {
  try {
    const bytes = Buffer.from(key, 'base64url');
    return bytes.length === 65 && ECDH.convertKey(bytes, 'prime256v1').length === 65;
  } catch {
    return false;
  }
}

function invalid(pointer: string, detail: string): DomainError {
  return new DomainError(
    'unprocessable',
    'INVALID_SUBSCRIPTION',
    'This is not a valid push subscription of a browser.',
    {
      errors: [{ pointer, detail }],
    },
  );
}
