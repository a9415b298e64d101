import { Op, UniqueConstraintError } from 'sequelize';
import { newId } from '../../base/ids.ts';
import type { WrappedDataKey } from '../../crypto/dataKeys.ts';
import type { RotationStore } from '../../crypto/rotateKeys.ts';
import { type Database, transaction } from '../database/database.ts';
import { type DataKeyRow, identityTables } from './tables.ts';

/** Wrapped data keys in MySQL. */
export function createDataKeyStore(database: Database): RotationStore {
  const { dataKeys, spaces } = identityTables(database);
  return {
    async latest(scope) {
      return present((await dataKeys.findOne({ where: { scope }, order: [['version', 'DESC']] }))?.get());
    },
    async byVersion(scope, version) {
      return present((await dataKeys.findOne({ where: { scope, version } }))?.get());
    },
    async insert(key) {
      try {
        return await transaction(database, async (tx) => {
          // A deleted space gets no new key, however late a value is sealed: the purge destroys all its keys.
          const space = await spaces.findByPk(key.scope, { transaction: tx, lock: tx.LOCK.SHARE });
          if (space !== null && space.get().deletedAt !== null) return false;
          await dataKeys.create({ id: newId('dataKey'), ...key, createdAt: new Date() }, { transaction: tx });
          return true;
        });
      } catch (error) {
        if (error instanceof UniqueConstraintError) return false;
        throw error;
      }
    },
    async scopes() {
      const rows = await dataKeys.findAll({ attributes: ['scope'], group: ['scope'], order: [['scope', 'ASC']] });
      return rows.map((row) => row.get().scope);
    },
    async wrappedByOthers(masterKeyId, limit) {
      const where = { masterKeyId: { [Op.ne]: masterKeyId } };
      const rows = await dataKeys.findAll({ where, order: [['id', 'ASC']], limit });
      return rows.map((row) => wrappedKeyOf(row.get()));
    },
    async rewrap({ scope, version, masterKeyId }, after) {
      await dataKeys.update(after, { where: { scope, version, masterKeyId } });
    },
  };
}

function present(row: DataKeyRow | undefined): WrappedDataKey | undefined {
  return row === undefined ? undefined : wrappedKeyOf(row);
}

function wrappedKeyOf(row: DataKeyRow): WrappedDataKey {
  return { scope: row.scope, version: row.version, masterKeyId: row.masterKeyId, wrappedKey: row.wrappedKey };
}
