import type { PoolConnection } from 'mysql2/promise';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

/** What the product takes for granted of a server's SQL, it asks for in each connection. */
let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
const select = 'SELECT @@SESSION.sql_mode AS mode';

test('a string escapes by a backslash, and what does not fit is an error, on every kind of connection', async () => {
  const { pool, trips, sequelize } = environment.database;
  const modes = await Promise.all([
    ...[pool, trips].map(async (each) => {
      const connection: PoolConnection = await each.getConnection();
      const [rows] = await connection.query(select);
      connection.release();
      return rows;
    }),
    sequelize.query(select).then(([rows]) => rows),
  ]);
  expect(modes).toEqual([[{ mode }], [{ mode }], [{ mode }]]);
});
