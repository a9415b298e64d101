import { hash } from 'node:crypto';
import { Op, type Transaction } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { randomText } from '../../base/text.ts';
import { type Database, transaction } from '../database/database.ts';
import type { Sessions } from './sessions.ts';
import { identityTables } from './tables.ts';

const lifetimeMs = 60_000;
// Crockford's base 32: no I, L, O or U, so a code can be read out and typed. 16 of them are 80 bits.
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const codeLength = 16;
const groupLength = 4;

export interface AuthCode {
  code: string;
  expiresAt: Date;
}

/** One-time codes: each works once, for 60 seconds. Only their hash is stored. */
export function createAuthCodes(database: Database, sessions: Sessions) {
  const { authCodes, users } = identityTables(database);
  return {
    /** A code that signs its bearer in as this user. */
    async create(userId: string, tx?: Transaction): Promise<AuthCode> {
      const symbols = randomText(alphabet, codeLength);
      const createdAt = new Date();
      const expiresAt = new Date(createdAt.getTime() + lifetimeMs);
      const row = { hash: hashOf(symbols), userId, createdAt, expiresAt, usedAt: null };
      await authCodes.create(row, { transaction: tx ?? null });
      return { code: symbols.match(new RegExp(`.{${groupLength}}`, 'g'))?.join('-') ?? symbols, expiresAt };
    },

    /**
     * Uses up the code and returns a new session's token. Of several concurrent calls exactly one succeeds: a
     * conditional update takes the row, in the transaction that makes the session. Throws 401 `INVALID_CODE`.
     */
    async exchange(
      code: string,
      client: { label?: string | undefined; address?: string | null } = {},
    ): Promise<string> {
      const codeHash = hashOf(code);
      return transaction(database, async (tx) => {
        const now = new Date();
        const [taken] = await authCodes.update(
          { usedAt: now },
          { where: { hash: codeHash, usedAt: null, expiresAt: { [Op.gt]: now } }, transaction: tx },
        );
        const row = taken === 1 ? await authCodes.findByPk(codeHash, { transaction: tx }) : null;
        const userId = row?.get().userId;
        const user = userId === undefined ? null : await users.findByPk(userId, { transaction: tx });
        if (user === null || user.get().disabledAt !== null) throw invalidCode();
        return sessions.signIn(user.get().id, { label: client.label, address: client.address ?? null }, tx);
      });
    },
  };
}

export type AuthCodes = ReturnType<typeof createAuthCodes>;

/** People add spaces and dashes, write in lower case, and read I for 1 and O for 0. */
function hashOf(code: string): Buffer {
  const symbols = code.toUpperCase().replace(/[\s-]/g, '').replaceAll('O', '0').replace(/[IL]/g, '1');
  return hash('sha256', `atrium/code/${symbols}`, 'buffer');
}

/** One answer for unknown, used and expired codes, so that the caller cannot tell them apart. */
function invalidCode(): DomainError {
  return new DomainError(
    'unauthenticated',
    'INVALID_CODE',
    'The code is wrong, was used before, or is older than 60 seconds. Get a new one.',
  );
}
