import { type Transaction, UniqueConstraintError } from 'sequelize';
import { DomainError, notFound } from '../../base/errors.ts';
import { createFreshCache } from '../../base/freshCache.ts';
import { type Actor, appendAudit, operator } from '../audit/audit.ts';
import { lockLivingSpace } from '../audit/livingSpace.ts';
import { type Database, transaction } from '../database/database.ts';
import { behind, type Page, type PageRequest, startOf, toPage } from '../database/pages.ts';
import { select, selectPrepared } from '../database/sql.ts';
import { revocationMaxAgeMs } from './sessions.ts';
import { identityTables, type MemberRow, type Role, type SpaceRow, type UserRow } from './tables.ts';
import type { Users } from './users.ts';

export interface Member {
  user: UserRow;
  role: Role;
  joinedAt: Date;
}

/** A space as one of its members sees it. */
export interface SpaceAccess {
  space: Pick<SpaceRow, 'id' | 'name' | 'createdAt'>;
  role: Role;
}

/** The members of spaces and their roles. */
export function createMembers(database: Database, users: Users) {
  const { members, users: userTable } = identityTables(database);
  const access = createFreshCache(loadAccess, { maxAgeMs: revocationMaxAgeMs });

  async function loadAccess(key: string): Promise<SpaceAccess | undefined> {
    const [spaceId, userId] = key.split(' ');
    const [row] = await selectPrepared<SpaceAccess['space'] & { role: Role }>(
      database.pool,
      `SELECT s.id, s.name, s.created_at, m.role
         FROM space_members m JOIN spaces s ON s.id = m.space_id JOIN users u ON u.id = m.user_id
        WHERE m.space_id = ? AND m.user_id = ? AND s.deleted_at IS NULL AND u.disabled_at IS NULL`,
      [spaceId ?? '', userId ?? ''],
    );
    if (row === undefined) return undefined;
    return { space: { id: row.id, name: row.name, createdAt: row.createdAt }, role: row.role };
  }

  async function memberOf(spaceId: string, userId: string, tx: Transaction): Promise<MemberRow> {
    const member = await members.findOne({ where: { spaceId, userId }, transaction: tx });
    if (member === null) throw notFound('member');
    return member.get();
  }

  /** Disabled owners do not count: they could not let others in. The space is locked, so its last owner stays. */
  async function keepAnOwner(spaceId: string, leaving: MemberRow, tx: Transaction): Promise<void> {
    if (leaving.role !== 'owner') return;
    const others = await select(
      tx,
      `SELECT 1 FROM space_members m JOIN users u ON u.id = m.user_id AND u.disabled_at IS NULL
        WHERE m.space_id = ? AND m.role = 'owner' AND m.user_id <> ? LIMIT 1 FOR UPDATE`,
      [spaceId, leaving.userId],
    );
    if (others.length > 0) return;
    throw new DomainError(
      'conflict',
      'LAST_OWNER',
      'This is the last owner of the space. Make another member an owner first.',
    );
  }

  async function present(member: MemberRow): Promise<Member> {
    const user = await users.byId(member.userId);
    if (user === undefined) throw notFound('member');
    return { user, role: member.role, joinedAt: member.createdAt };
  }

  return {
    /**
     * The space as this user sees it. Undefined when it is absent or deleted, when the user is no member, or when the
     * user is disabled. At most a second old.
     */
    access(spaceId: string, userId: string): Promise<SpaceAccess | undefined> {
      // No id contains a space character, so the key is unambiguous.
      if (spaceId.includes(' ')) return Promise.resolve(undefined);
      return access.get(keyOf(spaceId, userId));
    },
    forget: (spaceId: string, userId: string) => access.forget(keyOf(spaceId, userId)),

    async list(spaceId: string, page: PageRequest): Promise<Page<Member>> {
      const rows = (
        await members.findAll({
          where: { spaceId, ...behind('asc', startOf(page, 'userId')) },
          order: [['userId', 'ASC']],
          limit: page.limit + 1,
        })
      ).map((row) => row.get());
      const people = await userTable.findAll({ where: { id: rows.map((row) => row.userId) } });
      const byId = new Map(people.map((person) => [person.get().id, person.get()]));
      const found = rows.flatMap((row) => {
        const user = byId.get(row.userId);
        return user === undefined ? [] : [{ user, role: row.role, joinedAt: row.createdAt }];
      });
      return toPage(found, page.limit, (member) => member.user.id);
    },

    /** Throws 422 `UNKNOWN_USER` or 409 `ALREADY_MEMBER`. */
    async add(spaceId: string, email: string, role: Role, actor: Actor = operator): Promise<Member> {
      const member = await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        const user = await users.byEmail(email, tx);
        if (user === undefined || user.disabledAt !== null) {
          throw new DomainError('unprocessable', 'UNKNOWN_USER', 'No user has this e-mail address.', {
            errors: [{ pointer: '/email', detail: 'belongs to no user' }],
          });
        }
        const row: MemberRow = { spaceId, userId: user.id, role, createdAt: new Date() };
        try {
          await members.create(row, { transaction: tx });
        } catch (error) {
          if (!(error instanceof UniqueConstraintError)) throw error;
          throw new DomainError('conflict', 'ALREADY_MEMBER', 'This person is already a member.');
        }
        await appendAudit(tx, spaceId, actor, 'member.added', user.id);
        return { user, role, joinedAt: row.createdAt };
      });
      access.forget(keyOf(spaceId, member.user.id));
      return member;
    },

    /** Throws 404 for a user who is no member, 409 `LAST_OWNER`. */
    async changeRole(spaceId: string, userId: string, role: Role, actor: Actor = operator): Promise<Member> {
      const changed = await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        const member = await memberOf(spaceId, userId, tx);
        if (role !== 'owner') await keepAnOwner(spaceId, member, tx);
        await members.update({ role }, { where: { spaceId, userId }, transaction: tx });
        await appendAudit(tx, spaceId, actor, 'member.role-changed', userId);
        return { ...member, role };
      });
      access.forget(keyOf(spaceId, userId));
      return present(changed);
    },

    /** Throws 404 for a user who is no member, 409 `LAST_OWNER`. */
    async remove(spaceId: string, userId: string, actor: Actor = operator): Promise<void> {
      await transaction(database, async (tx) => {
        await lockLivingSpace(tx, spaceId);
        await keepAnOwner(spaceId, await memberOf(spaceId, userId, tx), tx);
        await members.destroy({ where: { spaceId, userId }, transaction: tx });
        await appendAudit(tx, spaceId, actor, 'member.removed', userId);
        await userTable.update(
          { defaultSpaceId: null },
          { where: { id: userId, defaultSpaceId: spaceId }, transaction: tx },
        );
      });
      access.forget(keyOf(spaceId, userId));
    },
  };
}

export type Members = ReturnType<typeof createMembers>;

function keyOf(spaceId: string, userId: string): string {
  return `${spaceId} ${userId}`;
}
