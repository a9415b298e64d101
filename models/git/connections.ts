import { hash } from 'node:crypto';
import { DomainError } from '../../base/errors.ts';
import type { Envelope } from '../../crypto/envelope.ts';
import { requireLivingSpace } from '../audit/livingSpace.ts';
import { deleteInBatches } from '../database/batches.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';

/** A pending connection: a person has yet to prove at a hosting provider which installations are theirs. */
export interface GitConnection {
  spaceId: string;
  /** The user who asked for it. */
  userId: string;
  provider: string;
}

const lifetimeMs = 10 * 60_000;

/**
 * Pending connections, by the hashes of their tokens. The first token goes to the provider and back, and is used once.
 * The second is in the page where the person chooses, and can be used until it expires.
 */
export function createGitConnections<Proven>(database: Database, envelope: Envelope) {
  async function begin(token: string, connection: GitConnection): Promise<Date> {
    const expiresAt = new Date(Date.now() + lifetimeMs);
    await transaction(database, async (tx) => {
      await requireLivingSpace(tx, connection.spaceId);
      await insert(tx, 'git_connections', { ...rowOf(token, connection), sealed: null, expiresAt });
    });
    return expiresAt;
  }

  return {
    /** Stores who asked, under the token. Returns the time when it expires. */
    begin,

    /** Removes and returns the connection of a token. Throws 410 `GIT_CONNECTION_EXPIRED`. */
    async take(token: string): Promise<GitConnection> {
      return transaction(database, async (tx) => {
        const [row] = await select<GitConnection>(
          tx,
          `SELECT space_id, user_id, provider FROM git_connections
            WHERE hash = ? AND sealed IS NULL AND expires_at > ? FOR UPDATE`,
          [hashOf(token), new Date()],
        );
        if (row === undefined) throw expired();
        await execute(tx, 'DELETE FROM git_connections WHERE hash = ?', [hashOf(token)]);
        return row;
      });
    },

    /** Stores the proof for the page on which the person chooses. */
    async prove(token: string, connection: GitConnection, proven: Proven): Promise<void> {
      const content = Buffer.from(JSON.stringify(proven), 'utf8');
      const sealed = await envelope.seal(connection.spaceId, contextOf(token), content);
      await transaction(database, async (tx) => {
        await requireLivingSpace(tx, connection.spaceId);
        const expiresAt = new Date(Date.now() + lifetimeMs);
        await insert(tx, 'git_connections', { ...rowOf(token, connection), sealed, expiresAt });
      });
    },

    /** Returns the stored proof. Throws 410 `GIT_CONNECTION_EXPIRED`. */
    async proven(token: string): Promise<GitConnection & { proven: Proven }> {
      const sql = `SELECT space_id, user_id, provider, sealed FROM git_connections
          WHERE hash = ? AND sealed IS NOT NULL AND expires_at > ?`;
      const [row] = await select<GitConnection & { sealed: Buffer }>(database.pool, sql, [hashOf(token), new Date()]);
      if (row === undefined) throw expired();
      const { sealed, ...connection } = row;
      const content = await envelope.open(connection.spaceId, contextOf(token), sealed);
      return { ...connection, proven: JSON.parse(content.toString('utf8')) as Proven };
    },
  };
}

export type GitConnections<Proven> = ReturnType<typeof createGitConnections<Proven>>;

/** Removes expired connections. */
export function purgeGitConnections(database: Database, now: Date, onBatch: () => void): Promise<number> {
  return deleteInBatches(database, 'DELETE FROM git_connections WHERE expires_at <= ? LIMIT ?', [now], onBatch);
}

function rowOf(token: string, { spaceId, userId, provider }: GitConnection) {
  return { hash: hashOf(token), spaceId, userId, provider };
}

function hashOf(token: string): Buffer {
  return hash('sha256', `atrium/git-connection/${token}`, 'buffer');
}

function contextOf(token: string): string {
  return `git_connections/${hashOf(token).toString('hex')}`;
}

function expired(): DomainError {
  const detail = 'This connection was already used or has expired. Start again.';
  return new DomainError('gone', 'GIT_CONNECTION_EXPIRED', detail);
}
