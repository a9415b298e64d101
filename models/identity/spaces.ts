import type { Transaction } from 'sequelize';
import { notFound } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { type Actor, appendAudit, operator } from '../audit/audit.ts';
import { addDefaultComputer } from '../computers/defaultComputer.ts';
import { type Database, transaction } from '../database/database.ts';
import { behind, type Page, type PageRequest, startOf, toPage } from '../database/pages.ts';
import { endSharing } from '../environments/claims.ts';
import { type Operation, operationModels } from '../operations/operation.ts';
import type { Members, SpaceAccess } from './members.ts';
import { identityTables, type SpaceRow } from './tables.ts';

/** Spaces, which agents and people share. */
export function createSpaces(database: Database, members: Members) {
  const { spaces, members: memberTable, users } = identityTables(database);

  async function oldestOf(userId: string): Promise<string | undefined> {
    const memberships = await memberTable.findAll({ where: { userId }, order: [['createdAt', 'ASC']] });
    const living = await spaces.findAll({
      where: { id: memberships.map((row) => row.get().spaceId), deletedAt: null },
      attributes: ['id'],
    });
    const ids = new Set(living.map((row) => row.get().id));
    return memberships.map((row) => row.get().spaceId).find((id) => ids.has(id));
  }

  return {
    /**
     * Makes a space with its maker as owner. A user's first space becomes their default. The same id again returns the
     * same space.
     */
    async create(
      userId: string,
      name: string,
      options: { id?: string; tx?: Transaction; actor?: Actor } = {},
    ): Promise<SpaceAccess> {
      const { id = newId('space') } = options;
      const make = async (tx: Transaction): Promise<SpaceRow> => {
        const user = await users.findByPk(userId, { transaction: tx, lock: tx.LOCK.UPDATE });
        if (user === null) throw notFound('user');
        const known = options.id === undefined ? null : await spaces.findByPk(id, { transaction: tx });
        if (known !== null) return known.get();
        const row: SpaceRow = { id, name, createdBy: userId, createdAt: new Date(), deletedAt: null };
        await spaces.create(row, { transaction: tx });
        await memberTable.create(
          { spaceId: row.id, userId, role: 'owner', createdAt: row.createdAt },
          { transaction: tx },
        );
        await addDefaultComputer(tx, row.id, userId);
        if (user.get().defaultSpaceId === null) await user.update({ defaultSpaceId: row.id }, { transaction: tx });
        await appendAudit(tx, row.id, options.actor ?? operator, 'space.made', null);
        return row;
      };
      const space = await (options.tx === undefined ? transaction(database, make) : make(options.tx));
      return { space, role: 'owner' };
    },

    /** The user's spaces, oldest first. */
    async list(userId: string, page: PageRequest): Promise<Page<SpaceAccess>> {
      const memberships = await memberTable.findAll({ where: { userId }, attributes: ['spaceId', 'role'] });
      const roles = new Map(memberships.map((row) => [row.get().spaceId, row.get().role]));
      const rows = await spaces.findAll({
        where: { id: [...roles.keys()], deletedAt: null, ...behind('asc', startOf(page, 'id')) },
        order: [['id', 'ASC']],
        limit: page.limit + 1,
      });
      const found = rows.map((row) => ({ space: row.get(), role: roles.get(row.get().id) ?? ('viewer' as const) }));
      return toPage(found, page.limit, (item) => item.space.id);
    },

    /** For the operator. Undefined when it is absent or deleted. */
    async byId(id: string): Promise<SpaceRow | undefined> {
      return (await spaces.findOne({ where: { id, deletedAt: null } }))?.get();
    },

    /** The space for a request that names none. Undefined when the user has none. */
    async defaultFor(userId: string): Promise<string | undefined> {
      const chosen = (await users.findByPk(userId))?.get().defaultSpaceId;
      if (chosen != null && (await members.access(chosen, userId)) !== undefined) return chosen;
      return oldestOf(userId);
    },

    async rename(spaceId: string, name: string, actor: Actor = operator): Promise<void> {
      const people = await transaction(database, async (tx) => {
        const space = await spaces.findOne({
          where: { id: spaceId, deletedAt: null },
          transaction: tx,
          lock: tx.LOCK.UPDATE,
        });
        if (space === null) throw notFound('space');
        await space.update({ name }, { transaction: tx });
        await appendAudit(tx, spaceId, actor, 'space.renamed', null);
        return memberTable.findAll({ where: { spaceId }, attributes: ['userId'], transaction: tx });
      });
      for (const person of people) members.forget(spaceId, person.get().userId);
    },

    /**
     * Deletes the space for all its members at once. The operation that this begins in the same transaction purges the
     * contents. The caller (or else the sweeper) starts that operation.
     */
    async remove(spaceId: string, userId: string): Promise<Operation> {
      const { people, operation } = await transaction(database, async (tx) => {
        const [changed] = await spaces.update(
          { deletedAt: new Date() },
          { where: { id: spaceId, deletedAt: null }, transaction: tx },
        );
        if (changed === 0) throw notFound('space');
        await endSharing(tx, spaceId);
        await users.update({ defaultSpaceId: null }, { where: { defaultSpaceId: spaceId }, transaction: tx });
        return {
          people: await memberTable.findAll({ where: { spaceId }, attributes: ['userId'], transaction: tx }),
          operation: await operationModels(tx).Operation.begin(
            { kind: 'deleteSpace', spaceId, userId, subjectId: spaceId },
            tx,
          ),
        };
      });
      for (const person of people) members.forget(spaceId, person.get().userId);
      return operation;
    },
  };
}

export type Spaces = ReturnType<typeof createSpaces>;
