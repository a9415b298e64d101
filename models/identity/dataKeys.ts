import { UniqueConstraintError } from 'sequelize';
import type { DataKeyStore, WrappedDataKey } from '../../crypto/dataKeys.ts';
import type { Database } from '../database.ts';
import { newId } from '../ids.ts';
import { type DataKeyRow, identityTables } from './tables.ts';

/** Wrapped data keys in MySQL. */
export function createDataKeyStore(database: Database): DataKeyStore {
  const { dataKeys } = identityTables(database);
  return {
    async latest(scope) {
      return present((await dataKeys.findOne({ where: { scope }, order: [['version', 'DESC']] }))?.get());
    },
    async byVersion(scope, version) {
      return present((await dataKeys.findOne({ where: { scope, version } }))?.get());
    },
    async insert(key) {
      try {
        await dataKeys.create({ id: newId('dataKey'), ...key, createdAt: new Date() });
        return true;
      } catch (error) {
        if (error instanceof UniqueConstraintError) return false;
        throw error;
      }
    },
  };
}

function present(row: DataKeyRow | undefined): WrappedDataKey | undefined {
  if (row === undefined) return undefined;
  return { scope: row.scope, version: row.version, masterKeyId: row.masterKeyId, wrappedKey: row.wrappedKey };
}
