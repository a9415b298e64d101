import { Op, type Transaction, UniqueConstraintError } from 'sequelize';
import { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { appendAuditOfUser, operator } from '../audit/audit.ts';
import { type Database, transaction } from '../database/database.ts';
import { selectPrepared } from '../database/sql.ts';
import { identityTables, type UserRow } from './tables.ts';

const emailPattern = /^[^\s@<>"',;]{1,64}@[^\s@<>"',;]{1,189}$/;

/** The people of this installation. */
export function createUsers(database: Database) {
  const { users, sessions } = identityTables(database);
  return {
    /** Adds a person. Throws 422 `INVALID_EMAIL` or 409 `USER_EXISTS`. */
    async add(email: string, name?: string, tx?: Transaction): Promise<UserRow> {
      const address = normalizeEmail(email);
      if (!isEmail(address)) {
        throw new DomainError('unprocessable', 'INVALID_EMAIL', 'This is not an e-mail address.');
      }
      const row: UserRow = {
        id: newId('user'),
        email: address,
        name: name ?? address.slice(0, address.indexOf('@')),
        defaultSpaceId: null,
        createdAt: new Date(),
        disabledAt: null,
      };
      try {
        await users.create(row, { transaction: tx ?? null });
      } catch (error) {
        if (!(error instanceof UniqueConstraintError)) throw error;
        throw new DomainError('conflict', 'USER_EXISTS', `There is already a user ${address}.`);
      }
      return row;
    },

    async byId(id: string, tx?: Transaction): Promise<UserRow | undefined> {
      return (await users.findByPk(id, { transaction: tx ?? null }))?.get();
    },

    /** The default space. Undefined for a user without one. */
    async defaultSpaceId(id: string): Promise<string | undefined> {
      const rows = await selectPrepared(database.pool, 'SELECT default_space_id FROM users WHERE id = ?', [id]);
      return (rows[0]?.defaultSpaceId as string | null | undefined) ?? undefined;
    },

    async byEmail(email: string, tx?: Transaction): Promise<UserRow | undefined> {
      return (await users.findOne({ where: { email: normalizeEmail(email) }, transaction: tx ?? null }))?.get();
    },

    /** The first user, made by `npm start`. The command line means this one when no user is named. */
    async first(): Promise<UserRow | undefined> {
      return (await users.findOne({ order: [['id', 'ASC']] }))?.get();
    },

    /**
     * Disables a user, or enables them again with the keys they had. Every process notices within a second. A disabled
     * user's sessions end, their keys stop working, and what runs in their name ends or may do nothing (runs of apps;
     * automations, schedules, webhooks). False when nothing changes.
     */
    async setDisabled(id: string, isDisabled: boolean): Promise<boolean> {
      return transaction(database, async (tx) => {
        const now = new Date();
        const [changed] = await users.update(
          { disabledAt: isDisabled ? now : null },
          { where: { id, disabledAt: isDisabled ? null : { [Op.ne]: null } }, transaction: tx },
        );
        if (changed === 0) return false;
        if (isDisabled) {
          await sessions.update({ revokedAt: now }, { where: { userId: id, revokedAt: null }, transaction: tx });
        }
        await appendAuditOfUser(tx, id, operator, isDisabled ? 'user.disabled' : 'user.enabled', id);
        return true;
      });
    },

    async count(): Promise<number> {
      return users.count();
    },
  };
}

export type Users = ReturnType<typeof createUsers>;

/** Whether this has the form of an e-mail address. */
export function isEmail(address: string): boolean {
  return emailPattern.test(address);
}

/** Addresses are compared without case and surrounding space. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}
