import type { Transaction, WhereOptions } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { createFreshCache } from '../../base/freshCache.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAuditOfUser, operator } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { behind, type Page, type PageRequest, startOf, toPage } from '../database/pages.ts';
import { selectPrepared } from '../database/sql.ts';
import { hashApiKey, hintOf, isWellFormedApiKey, newApiKey } from './apiKeyFormat.ts';
import { allows, isScope, scopes as knownScopes, type Scope } from './scopes.ts';
import { revocationMaxAgeMs } from './sessions.ts';
import { type ApiKeyRow, identityTables } from './tables.ts';

/** What a key grants its bearer. */
export interface KeyGrant {
  keyId: string;
  userId: string;
  scopes: string[];
  expiresAt: Date | null;
}

export interface NewApiKey {
  name: string;
  /** Default: all that the maker may do. */
  scopes?: readonly string[] | undefined;
  expiresAt?: Date | null | undefined;
  /** The maker, for the audit logs of the maker's spaces. Default: the operator. */
  actor?: Actor | undefined;
  /** The key that makes this one. It bounds the scopes and the expiry. */
  madeWith?: { keyId: string; scopes: readonly string[]; expiresAt: Date | null } | undefined;
}

/** "Last used" is written at most this often for one key. */
const lastUsedEveryMs = 60_000;

/** API keys: a user's own credential for programs. */
export function createApiKeys(database: Database) {
  const { apiKeys } = identityTables(database);
  const grants = createFreshCache(loadGrant, { maxAgeMs: revocationMaxAgeMs });
  const lastUsed = new Map<string, number>();

  async function loadGrant(hashHex: string): Promise<KeyGrant | undefined> {
    const [row] = await selectPrepared<Omit<KeyGrant, 'scopes'> & { scopes: string }>(
      database.pool,
      `SELECT k.id AS keyId, k.user_id, k.scopes, k.expires_at
         FROM api_keys k JOIN users u ON u.id = k.user_id
        WHERE k.hash = ? AND k.revoked_at IS NULL AND u.disabled_at IS NULL`,
      [Buffer.from(hashHex, 'hex')],
    );
    return row === undefined ? undefined : { ...row, scopes: JSON.parse(row.scopes) as string[] };
  }

  async function lockLiving(where: WhereOptions<ApiKeyRow>, tx: Transaction): Promise<ApiKeyRow[]> {
    const rows = await apiKeys.findAll({ where: { ...where, revokedAt: null }, transaction: tx, lock: tx.LOCK.UPDATE });
    return rows.map((row) => row.get());
  }

  function noteUse(keyId: string): void {
    const now = Date.now();
    if (now - (lastUsed.get(keyId) ?? 0) < lastUsedEveryMs) return;
    if (lastUsed.size > 10_000) lastUsed.clear();
    lastUsed.set(keyId, now);
    // No request waits for this or fails because of it.
    apiKeys.update({ lastUsedAt: new Date(now) }, { where: { id: keyId } }).catch(() => lastUsed.delete(keyId));
  }

  return {
    /** The key's row, and its text, which cannot be read again. */
    async create(userId: string, wanted: NewApiKey): Promise<{ row: ApiKeyRow; key: string }> {
      const { granted, expiresAt } = bound(wanted);
      const key = newApiKey();
      const row: ApiKeyRow = {
        id: newId('apiKey'),
        userId,
        parentKeyId: wanted.madeWith?.keyId ?? null,
        name: wanted.name,
        hash: hashApiKey(key),
        hint: hintOf(key),
        scopes: JSON.stringify(granted),
        createdAt: new Date(),
        expiresAt,
        revokedAt: null,
        lastUsedAt: null,
      };
      await transaction(database, async (tx) => {
        // Locked, so that a key that is being revoked right now leaves no child behind.
        const parent = row.parentKeyId === null ? undefined : await lockLiving({ id: row.parentKeyId }, tx);
        if (parent?.length === 0) throw invalidKey();
        await apiKeys.create(row, { transaction: tx });
        await appendAuditOfUser(tx, userId, wanted.actor ?? operator, 'key.made', row.id);
      });
      return { row, key };
    },

    /** What the key grants. Throws 401 `INVALID_API_KEY`, for a malformed key without asking the database. */
    async authenticate(key: string): Promise<KeyGrant> {
      if (!isWellFormedApiKey(key)) throw invalidKey();
      const grant = await grants.get(hashApiKey(key).toString('hex'));
      if (grant === undefined) throw invalidKey();
      if (grant.expiresAt !== null && grant.expiresAt.getTime() <= Date.now()) throw invalidKey();
      noteUse(grant.keyId);
      return grant;
    },

    /** Whether the key is still valid. Open streams ask every few seconds. */
    async isValid(keyId: string): Promise<boolean> {
      const sql = `SELECT k.expires_at
           FROM api_keys k JOIN users u ON u.id = k.user_id
          WHERE k.id = ? AND k.revoked_at IS NULL AND u.disabled_at IS NULL`;
      const [row] = await selectPrepared<{ expiresAt: Date | null }>(database.pool, sql, [keyId]);
      return row !== undefined && (row.expiresAt === null || row.expiresAt.getTime() > Date.now());
    },

    /** The user's keys that are not revoked, newest first. Includes expired ones, because they explain a refusal. */
    async list(userId: string, page: PageRequest): Promise<Page<ApiKeyRow>> {
      const rows = await apiKeys.findAll({
        where: { userId, revokedAt: null, ...behind('desc', startOf(page, 'id')) },
        order: [['id', 'DESC']],
        limit: page.limit + 1,
      });
      return toPage(
        rows.map((row) => row.get()),
        page.limit,
        (row) => row.id,
      );
    },

    /** Revokes the key and every key made with it: a thief may have made more. False when there is none. */
    async revoke(userId: string, keyId: string, actor: Actor = operator): Promise<boolean> {
      const revoked = await transaction(database, async (tx) => {
        const found: ApiKeyRow[] = [];
        let wave = await lockLiving({ id: keyId, userId }, tx);
        while (wave.length > 0) {
          found.push(...wave);
          wave = await lockLiving({ parentKeyId: wave.map((row) => row.id) }, tx);
        }
        await apiKeys.update({ revokedAt: new Date() }, { where: { id: found.map((row) => row.id) }, transaction: tx });
        for (const { id } of found) await appendAuditOfUser(tx, userId, actor, 'key.revoked', id);
        return found;
      });
      for (const row of revoked) grants.forget(row.hash.toString('hex'));
      return revoked.length > 0;
    },

    /** Revokes all keys of a user. Every process notices within a second. */
    async revokeAll(userId: string, tx: Transaction): Promise<void> {
      await apiKeys.update({ revokedAt: new Date() }, { where: { userId, revokedAt: null }, transaction: tx });
    },
  };
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

/** A key never has more scopes, or a later expiry, than the key that made it. */
function bound({ scopes, expiresAt, madeWith }: NewApiKey): { granted: Scope[]; expiresAt: Date | null } {
  const wanted = [...new Set(scopes ?? madeWith?.scopes ?? ['*'])];
  const granted = wanted.filter(isScope);
  if (granted.length === 0 || granted.length < wanted.length) {
    const known = Object.keys(knownScopes).join(', ');
    const bad = wanted.find((scope) => !isScope(scope));
    const what = bad === undefined ? 'A key needs at least one scope.' : `There is no scope ${JSON.stringify(bad)}.`;
    throw new DomainError('unprocessable', 'UNKNOWN_SCOPE', `${what} The scopes are: ${known}.`);
  }
  if (expiresAt != null && expiresAt.getTime() <= Date.now()) {
    throw new DomainError('unprocessable', 'EXPIRY_IN_THE_PAST', 'The expiry must be in the future.', {
      errors: [{ pointer: '/expiresAt', detail: 'must be in the future' }],
    });
  }
  if (madeWith === undefined) return { granted, expiresAt: expiresAt ?? null };
  const wider = granted.find((scope) => !allows(madeWith.scopes, scope));
  if (wider !== undefined) {
    const detail = `An API key cannot create a key with more scopes than its own. It lacks "${wider}".`;
    throw new DomainError('forbidden', 'SCOPE_TOO_WIDE', detail);
  }
  const until = expiresAt ?? madeWith.expiresAt;
  if (madeWith.expiresAt !== null && until !== null && until > madeWith.expiresAt) {
    throw new DomainError(
      'forbidden',
      'EXPIRY_TOO_LATE',
      'An API key cannot create a key that expires later than itself.',
    );
  }
  return { granted, expiresAt: until };
}

function invalidKey(): DomainError {
  const detail = 'The API key is wrong, expired or revoked. Make another by: npm run -s atrium -- key create.';
  return new DomainError('unauthenticated', 'INVALID_API_KEY', detail);
}
