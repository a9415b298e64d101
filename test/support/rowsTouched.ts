import type { Config } from '../../config/index.ts';
import { type Database, openDatabase } from '../../models/database/database.ts';

/**
 * The number of rows that the database's server reads and writes for `work`, which gets a database with one connection
 * of each kind. It measures cost independently of the machine's load.
 */
export async function rowsTouched(
  config: Pick<Config, 'database'>,
  work: (database: Database) => Promise<unknown>,
): Promise<number> {
  const database = openDatabase({ database: { ...config.database, poolSize: 1 } });
  const queries = [
    (sql: string) => database.sequelize.query(sql),
    // This is another connection, with its own counters.
    (sql: string) => database.pool.query(sql),
  ];
  const count = async () => {
    let sum = 0;
    for (const query of queries) {
      const [rows] = await query(`SHOW SESSION STATUS LIKE 'Handler%'`);
      const counters = rows as { Variable_name: string; Value: string }[];
      const ofRows = counters.filter(({ Variable_name: name }) => /^Handler_(read|update|write|delete)/.test(name));
      sum = ofRows.reduce((sofar, { Value }) => sofar + Number(Value), sum);
    }
    return sum;
  };
  try {
    const before = await count();
    await work(database);
    return (await count()) - before;
  } finally {
    await database.close();
  }
}
