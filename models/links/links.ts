import { hash, randomBytes } from 'node:crypto';
import type { RowDataPacket } from 'mysql2/promise';
import type { Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { type Actor, appendAudit } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { execute, insert, select } from '../database/sql.ts';

/** A kind of link that expires. */
export interface LinkKind {
  table: 'port_links' | 'desktop_links' | 'browser_links' | 'thread_shares';
  /** The column with the id of the object that a link opens. */
  opens: 'computer_id' | 'session_id' | 'thread_id';
  /** How many valid links one object may have, and the error for one more. */
  most: number;
  tooMany: { code: string; detail: string };
  /** The code of 410 for a link that has ended. */
  endedCode: string;
  /** The name of the kind in the audit log. */
  audit: 'port-link' | 'desktop-link' | 'browser-link' | 'thread-share';
  /**
   * Whether a link that has ended keeps its row, so that its visitors learn that it has ended. Rows of other kinds are
   * deleted.
   */
  isRemembered: boolean;
  /** SQL condition for the links that count towards the limit. Without it, all count. */
  counted?: string;
}

export interface NewLink {
  id: string;
  /** The id of the object that the link opens. */
  openedId: string;
  spaceId: string;
  /** Null for a link that does not expire. */
  ttlSeconds: number | null;
  /** The columns that only this kind has. */
  columns: Record<string, unknown>;
}

/**
 * Whether a link has neither expired nor been revoked. Does not check whether its creator may still share the object.
 */
export function linkHolds({
  expiresAt,
  revokedAt = null,
}: {
  expiresAt: Date | null;
  revokedAt?: Date | null;
}): boolean {
  return revokedAt === null && (expiresAt === null || expiresAt.getTime() > Date.now());
}

export function linkEnded({ endedCode }: Pick<LinkKind, 'endedCode'>): DomainError {
  return new DomainError('gone', endedCode, 'This link has expired or was revoked.');
}

/**
 * Writes a link, or returns false if there is one with this id. The caller holds a lock, so that two requests cannot
 * exceed the limit together. Throws 422 with the code of `tooMany`.
 */
export async function insertLink(tx: Transaction, kind: LinkKind, link: NewLink, actor: Actor): Promise<boolean> {
  const { table, opens, counted = 'TRUE' } = kind;
  const now = new Date();
  if (!kind.isRemembered) {
    await execute(tx, `DELETE FROM ${table} WHERE ${opens} = ? AND expires_at <= ?`, [link.openedId, now]);
  }
  const isUnrevoked = kind.isRemembered ? 'revoked_at IS NULL' : 'TRUE';
  const known = await select<{ id: string; counts: number }>(
    tx,
    `SELECT id, (${isUnrevoked} AND (expires_at IS NULL OR expires_at > ?) AND ${counted}) AS counts
      FROM ${table} WHERE ${opens} = ?`,
    [now, link.openedId],
  );
  if (known.some(({ id }) => id === link.id)) return false;
  if (known.filter(({ counts }) => counts === 1).length >= kind.most) {
    throw new DomainError('unprocessable', kind.tooMany.code, kind.tooMany.detail);
  }
  await insert(tx, table, {
    id: link.id,
    [opens]: link.openedId,
    ...link.columns,
    createdAt: now,
    expiresAt: link.ttlSeconds === null ? null : new Date(now.getTime() + link.ttlSeconds * 1_000),
  });
  await appendAudit(tx, link.spaceId, actor, `${kind.audit}.created`, link.id);
  return true;
}

/** Ends a link. Returns false if it does not exist or has been revoked already. */
export async function revokeLink(
  database: Database,
  { table, opens, isRemembered, audit }: LinkKind,
  { id, openedId, spaceId }: Pick<NewLink, 'id' | 'openedId' | 'spaceId'>,
  actor: Actor,
): Promise<boolean> {
  return transaction(database, async (tx) => {
    const { affectedRows } = isRemembered
      ? await execute(tx, `UPDATE ${table} SET revoked_at = ? WHERE id = ? AND ${opens} = ? AND revoked_at IS NULL`, [
          new Date(),
          id,
          openedId,
        ])
      : await execute(tx, `DELETE FROM ${table} WHERE id = ? AND ${opens} = ?`, [id, openedId]);
    if (affectedRows > 0) await appendAudit(tx, spaceId, actor, `${audit}.revoked`, id);
    return affectedRows > 0;
  });
}

/** A token for a link: 256 random bits that go into a URL as they are. Only its hash is stored. */
export function newLinkToken(): string {
  return randomBytes(32).toString('base64url');
}

/** The form in which a token is stored, so that a database dump does not contain working links. */
export function hashLinkToken(token: string): Buffer {
  return hash('sha256', `atrium/link/${token}`, 'buffer');
}

/** Gives a link another token; its earlier one stops working. Throws 410 if the link has ended. */
export async function renewLinkToken({ pool }: Pick<Database, 'pool'>, kind: LinkKind, id: string): Promise<string> {
  const token = newLinkToken();
  const sql = `UPDATE ${kind.table} SET token_hash = ? WHERE id = ? AND (expires_at IS NULL OR expires_at > ?)`;
  const { affectedRows } = await execute(pool, sql, [hashLinkToken(token), id, new Date()]);
  if (affectedRows === 0) throw linkEnded(kind);
  return token;
}

/** The row of the link with this token, unless it has expired. */
export async function findLinkByToken(
  { pool }: Pick<Database, 'pool'>,
  { table }: LinkKind,
  columns: string,
  token: string,
): Promise<RowDataPacket | undefined> {
  const sql = `SELECT ${columns} FROM ${table} WHERE token_hash = ? AND (expires_at IS NULL OR expires_at > ?)`;
  const [row] = await select(pool, sql, [hashLinkToken(token), new Date()]);
  return row;
}

/** Ends every link to a port, a desktop and a browser. */
export async function endLinks({ pool }: Pick<Database, 'pool'>): Promise<void> {
  const now = new Date();
  for (const table of ['port_links', 'desktop_links']) {
    await execute(pool, `UPDATE ${table} SET revoked_at = ? WHERE revoked_at IS NULL`, [now]);
  }
  await execute(pool, 'UPDATE browser_links SET expires_at = ?, token_hash = NULL WHERE expires_at > ?', [now, now]);
}
