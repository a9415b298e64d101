import { DomainError, notFound } from '../../../base/errors.ts';
import { createFreshCache, type FreshCache, keepBounded } from '../../../base/freshCache.ts';
import { type DriveAuthority, driveAuthorities } from '../../../models/computers/driveAuthority.ts';
import type { Database } from '../../../models/database/database.ts';

/** How old an authority may be when a program reads. A change looks anew. */
const maxAgeMs = 1_000;
const mostTold = 10_000;

/** An authority to change something, which has a user. */
export type WriteAuthority = DriveAuthority & { userId: string };

/** With which authority the programs of computers use the drives. */
export class DriveAuthorities {
  readonly #database: Pick<Database, 'pool'>;
  readonly #lately: FreshCache<DriveAuthority>;
  /** What the daemon was last told, by computer. */
  readonly #told = new Map<string, DriveAuthority['access']>();

  constructor(database: Pick<Database, 'pool'>) {
    this.#database = database;
    this.#lately = createFreshCache((computerId) => this.now(computerId), { maxAgeMs });
  }

  async now(computerId: string): Promise<DriveAuthority> {
    const authority = (await driveAuthorities(this.#database, [computerId])).get(computerId);
    if (authority === undefined) throw notFound('computer');
    return authority;
  }

  /** Throws 403. */
  async toRead(computerId: string): Promise<DriveAuthority> {
    const authority = await this.#lately.get(computerId);
    if (authority.access !== 'none') return authority;
    throw forbidden('The person who made this computer may not read the drive any more.');
  }

  /** Throws 403. */
  async toWrite(computerId: string): Promise<WriteAuthority> {
    const { userId, ...authority } = await this.now(computerId);
    if (authority.access === 'write' && userId !== null) return { ...authority, userId };
    throw forbidden('The person who made this computer may not change the drive.');
  }

  /** To write what programs had written while they might. Throws 403 if the person may not change the drive any more. */
  async toSend(computerId: string): Promise<WriteAuthority> {
    const { userId, ...authority } = await this.now(computerId);
    if (authority.mayChange && userId !== null) return { ...authority, userId };
    throw forbidden('The person who made this computer may not change the drive.');
  }

  isTold(computerId: string, access: DriveAuthority['access']): boolean {
    return this.#told.get(computerId) === access;
  }

  told(computerId: string, access: DriveAuthority['access']): void {
    keepBounded(this.#told, mostTold, computerId, access);
  }
}

const forbidden = (detail: string) => new DomainError('forbidden', 'DRIVE_FORBIDDEN', detail);
