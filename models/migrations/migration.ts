import type { QueryInterface } from 'sequelize';

/** One step of the schema. MySQL commits each DDL statement by itself, so a step must be safe to run again. */
export interface Migration {
  name: string;
  up(queryInterface: QueryInterface): Promise<void>;
}

// Ids, names and hashes are compared byte by byte, whatever the database's default collation.
export const tableOptions = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/** Makes an area's tables in a new database, and their initial rows. */
export function initialTables(area: string, tables: readonly string[], rows: readonly string[] = []): Migration {
  return {
    name: `0000-${area}`,
    async up({ sequelize }) {
      for (const table of tables) await sequelize.query(`${table} ${tableOptions}`);
      for (const row of rows) await sequelize.query(row);
    },
  };
}
