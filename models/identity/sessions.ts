import { Op, type Transaction } from 'sequelize';
import { createFreshCache } from '../../base/freshCache.ts';
import { newId } from '../../base/ids.ts';
import { firstOf } from '../../base/text.ts';
import { type Actor, appendAuditOfUser, operator } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { behind, type Page, type PageRequest, startOf, toPage } from '../database/pages.ts';
import { execute, selectPrepared } from '../database/sql.ts';
import type { createSessionTokens, SessionClaims } from './sessionTokens.ts';
import { invalidToken, tokenExpired } from './sessionTokens.ts';
import { sessionLifetimeMs } from './signingKeys.ts';
import { identityTables, type SessionRow } from './tables.ts';

/** How long another API process may miss a revocation. */
export const revocationMaxAgeMs = 1_000;

const labelMaxLength = 200;

type Tokens = ReturnType<typeof createSessionTokens>;

/** Sessions: one per sign-in, twelve hours long, ended early by logging out or by revocation. */
export function createSessions(database: Database, tokens: Tokens) {
  const { sessions } = identityTables(database);
  const validity = createFreshCache(loadValidity, { maxAgeMs: revocationMaxAgeMs });

  async function loadValidity(sessionId: string): Promise<{ userId: string; expiresAt: Date } | undefined> {
    const sql = `SELECT s.user_id, s.expires_at
         FROM sessions s JOIN users u ON u.id = s.user_id
        WHERE s.id = ? AND s.revoked_at IS NULL AND u.disabled_at IS NULL`;
    const [row] = await selectPrepared<{ userId: string; expiresAt: Date }>(database.pool, sql, [sessionId]);
    return row;
  }

  async function store(userId: string, label: string | undefined, tx?: Transaction): Promise<SessionRow> {
    const createdAt = new Date();
    const row: SessionRow = {
      id: newId('session'),
      userId,
      label: label === undefined ? null : firstOf(label, labelMaxLength),
      createdAt,
      expiresAt: new Date(createdAt.getTime() + sessionLifetimeMs),
      revokedAt: null,
    };
    await sessions.create(row, { transaction: tx ?? null });
    return row;
  }

  const tokenOf = ({ userId, id, expiresAt }: SessionRow) =>
    tokens.sign({ userId, sessionId: id, expiresAtMs: expiresAt.getTime() });

  return {
    /** A new session's token. `label` says what it is for (the client's user agent). The list of sessions shows it. */
    async create(userId: string, options: { label?: string | undefined } = {}): Promise<string> {
      return tokenOf(await store(userId, options.label));
    },

    /** Makes a session for a sign-in and records it in the audit logs of the user's spaces. */
    async signIn(
      userId: string,
      client: { label?: string | undefined; address: string | null },
      tx: Transaction,
    ): Promise<string> {
      const session = await store(userId, client.label, tx);
      const actor = { userId, credentialId: session.id, address: client.address };
      await appendAuditOfUser(tx, userId, actor, 'signed-in', null);
      return tokenOf(session);
    },

    /** The claims of a token whose session is still valid. Throws 401 `INVALID_TOKEN` or `TOKEN_EXPIRED`. */
    async authenticate(token: string): Promise<SessionClaims> {
      const claims = await tokens.verify(token);
      const session = await validity.get(claims.sessionId);
      if (session === undefined || session.userId !== claims.userId) throw invalidToken();
      if (session.expiresAt.getTime() <= Date.now()) throw tokenExpired();
      return claims;
    },

    /** Whether the session is still valid. Open streams ask every few seconds. */
    async isValid(sessionId: string): Promise<boolean> {
      const session = await validity.get(sessionId);
      return session !== undefined && session.expiresAt.getTime() > Date.now();
    },

    /**
     * Whether the session was ended by signing out or by revocation, or its user was disabled. What the session began
     * ends then, but not when the session just expires. Rows are kept for a month after they expire.
     */
    async wasEnded(sessionId: string): Promise<boolean> {
      const sql = `SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
          WHERE s.id = ? AND (s.revoked_at IS NOT NULL OR u.disabled_at IS NOT NULL)`;
      const rows = await selectPrepared(database.pool, sql, [sessionId]);
      return rows.length > 0;
    },

    /** The user's valid sessions, newest first. */
    async list(userId: string, page: PageRequest): Promise<Page<SessionRow>> {
      const rows = await sessions.findAll({
        where: {
          userId,
          revokedAt: null,
          expiresAt: { [Op.gt]: new Date() },
          ...behind('desc', startOf(page, 'id')),
        },
        order: [['id', 'DESC']],
        limit: page.limit + 1,
      });
      return toPage(
        rows.map((row) => row.get()),
        page.limit,
        (row) => row.id,
      );
    },

    /** False when the user has no such valid session. */
    async revoke(userId: string, sessionId: string, actor: Actor = operator): Promise<boolean> {
      const changed = await transaction(database, async (tx) => {
        const [revoked] = await sessions.update(
          { revokedAt: new Date() },
          { where: { id: sessionId, userId, revokedAt: null, expiresAt: { [Op.gt]: new Date() } }, transaction: tx },
        );
        if (revoked > 0) await appendAuditOfUser(tx, userId, actor, 'session.revoked', sessionId);
        return revoked > 0;
      });
      validity.forget(sessionId);
      return changed;
    },

    /** A session that the operator makes at the command line. */
    async createByOperator(userId: string, label: string): Promise<string> {
      const session = await transaction(database, async (tx) => {
        const made = await store(userId, label, tx);
        await appendAuditOfUser(tx, userId, operator, 'signed-in', userId);
        return made;
      });
      return tokenOf(session);
    },

    /** Ends all sessions of a user. Every process notices within a second. */
    async revokeAll(userId: string, tx: Transaction): Promise<void> {
      await sessions.update({ revokedAt: new Date() }, { where: { userId, revokedAt: null }, transaction: tx });
    },
  };
}

export type Sessions = ReturnType<typeof createSessions>;

/** Ends every session and every pending sign-in. API keys stay as they are. */
export async function endSignIns({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await execute(pool, 'UPDATE sessions SET revoked_at = ? WHERE revoked_at IS NULL', [new Date()]);
  for (const table of ['auth_codes', 'sign_ins']) await execute(pool, `DELETE FROM ${table}`);
}
