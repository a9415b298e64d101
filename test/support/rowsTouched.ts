import type { Config } from '../../config/index.ts';
import { type Database, openDatabase } from '../../models/database.ts';

/**
 * How many rows the database's server reads and writes for `work`, which gets a database with one connection: what a
 * piece of work costs, on however busy a machine.
 */
export async function rowsTouched(
  config: Pick<Config, 'database'>,
  work: (database: Database) => Promise<unknown>,
): Promise<number> {
  const database = openDatabase({ database: { ...config.database, poolSize: 1 } });
  const count = async () => {
    const [rows] = await database.sequelize.query(`SHOW SESSION STATUS LIKE 'Handler%'`);
    const counters = rows as { Variable_name: string; Value: string }[];
    const ofRows = counters.filter(({ Variable_name: name }) => /^Handler_(read|update|write|delete)/.test(name));
    return ofRows.reduce((sum, { Value }) => sum + Number(Value), 0);
  };
  try {
    const before = await count();
    await work(database);
    return (await count()) - before;
  } finally {
    await database.close();
  }
}
