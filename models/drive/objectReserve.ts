import { oneFor } from '../../base/oneFor.ts';
import type { Database } from '../database/database.ts';
import { execute } from '../database/sql.ts';
import { leaseMs, newObjectKey } from './driveObject.ts';

/** The space of a reserved object that no upload has taken yet. */
export const noSpace = '';

const keysPerFill = 32;
const refillBelow = 16;
/** What is left of a lease when a key is handed out: enough time for the taker to renew it. */
const marginMs = 2 * 60_000;

interface ReservedKey {
  objectKey: string;
  usableUntil: number;
}

/**
 * Keys of objects whose rows were committed in advance, many at a time. An upload of a small file takes one and needs
 * no commit of its own before the first byte. A row of the reserve is like that of any arriving object, but it belongs
 * to no space and counts no bytes until the commit that keeps it. Unused keys are deleted in time. The sweeper removes
 * those of a killed process when their lease has expired.
 */
class ObjectReserve {
  private readonly database: Database;
  private free: ReservedKey[] = [];
  private filling: Promise<void> | undefined;
  private lapsing: NodeJS.Timeout | undefined;

  constructor(database: Database) {
    this.database = database;
  }

  /** A key whose row is committed. It is handed out only once. */
  async take(): Promise<string> {
    for (;;) {
      this.discardLapsed();
      const taken = this.free.shift();
      if (taken === undefined) {
        await this.fill();
        continue;
      }
      // A failure is not lost: if it lasts, the caller that finds the reserve empty gets it.
      if (this.free.length < refillBelow) this.fill().catch(() => undefined);
      return taken.objectKey;
    }
  }

  /** Called when one key turned out to be given up. The others may be too, so they are left to the sweeper. */
  forget(): void {
    this.free = [];
  }

  /** Deletes the keys that were not taken, before the database is closed. */
  async empty(): Promise<void> {
    clearTimeout(this.lapsing);
    await this.filling?.catch(() => undefined);
    const left = this.free;
    this.free = [];
    await this.discard(left);
  }

  private fill(): Promise<void> {
    this.filling ??= this.addKeys().finally(() => {
      this.filling = undefined;
    });
    return this.filling;
  }

  private async addKeys(): Promise<void> {
    const now = Date.now();
    const keys = Array.from({ length: keysPerFill }, newObjectKey);
    const rows = keys.map((key) => [key, noSpace, 'arriving', new Date(now + leaseMs), new Date(now)]);
    const sql = 'INSERT INTO drive_objects (object_key, space_id, state, lease_expires_at, created_at) VALUES ?';
    await execute(this.database.pool, sql, [rows]);
    this.free.push(...keys.map((objectKey) => ({ objectKey, usableUntil: now + leaseMs - marginMs })));
    clearTimeout(this.lapsing);
    this.lapsing = setTimeout(() => this.discardLapsed(), leaseMs - marginMs).unref();
  }

  private discardLapsed(): void {
    const now = Date.now();
    const lapsed = this.free.filter(({ usableUntil }) => usableUntil <= now);
    if (lapsed.length === 0) return;
    this.free = this.free.filter(({ usableUntil }) => usableUntil > now);
    // The sweeper finds rows that cannot be deleted now.
    this.discard(lapsed).catch(() => undefined);
  }

  private async discard(keys: readonly ReservedKey[]): Promise<void> {
    if (keys.length === 0) return;
    const sql = "DELETE FROM drive_objects WHERE object_key IN (?) AND state = 'arriving' AND space_id = ?";
    await execute(this.database.pool, sql, [keys.map(({ objectKey }) => objectKey), noSpace]);
  }
}

/** The reserve of this process. */
export const reserveOf = oneFor((database: Database) => new ObjectReserve(database));
