import { DomainError, notFound } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { openPassword, ownAccountOf } from './accounts.ts';
import { getDatabase, requireLiving } from './spaceDatabase.ts';
import type { Asked } from './wishes.ts';

/** The details with which a client connects to a database. */
export interface ConnectionDetails {
  database: string;
  user: string;
  password: string;
  /** Until when the previous password is valid. Null if it is not. */
  previousUntil: Date | null;
}

/**
 * The details of the space's own account. Each read is in the audit log. Throws 404, and 409 `DATABASE_DELETED` or
 * `DATABASE_NOT_READY`.
 */
export async function readConnectionDetails(
  database: Database,
  envelope: Envelope,
  { spaceId, id, actor }: Asked,
): Promise<ConnectionDetails> {
  const found = await getDatabase(database, { spaceId, id });
  requireLiving(found);
  if (!found.isMade) {
    throw new DomainError('conflict', 'DATABASE_NOT_READY', 'The database is still being made.', {
      retryAfterSeconds: 1,
    });
  }
  const own = await ownAccountOf(database, id);
  if (own === undefined) throw notFound('database');
  const password = await openPassword(envelope, own, own.sealed);
  await transaction(database, (tx) => appendAudit(tx, spaceId, actor, 'database.connection-read', id));
  const { previousUntil, serverUser: user } = own;
  const isOver = previousUntil !== null && previousUntil <= new Date();
  return { database: found.serverName, user, password, previousUntil: isOver ? null : previousUntil };
}
