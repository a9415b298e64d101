import { createHmac } from 'node:crypto';
import { endConnection } from './align.ts';
import type { TenantConnection } from './connection.ts';
import { TenantServerError } from './errors.ts';

const attempts = 10;
const nameLength = 48; // MySQL takes 64 at most

/**
 * The name of a database's lock. Anyone who knows it can take the lock, even a tenant. So it is derived from the
 * password of Atrium's own account.
 */
export function fenceName(url: string, key: string): string {
  return createHmac('sha256', new URL(url).password).update(`atrium/${key}`).digest('hex').slice(0, nameLength);
}

/**
 * Takes a lock that ends with the connection. A worker that holds it counts as lost: its connection is ended, with
 * everything it has begun there, before this returns.
 */
export async function takeFence(connection: TenantConnection, name: string): Promise<void> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const waitSeconds = attempt === 0 ? 0 : 1;
    const [taken] = await connection.rows<{ isOurs: number }>('SELECT GET_LOCK(?, ?) AS isOurs', [name, waitSeconds]);
    if (Number(taken?.isOurs) === 1) return;
    const [held] = await connection.rows<{ holder: number | null }>('SELECT IS_USED_LOCK(?) AS holder', [name]);
    if (typeof held?.holder === 'number') await endConnection(connection, held.holder);
  }
  throw new TenantServerError({ code: 'HELD_BY_ANOTHER' });
}
