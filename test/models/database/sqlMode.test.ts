import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

/** Each connection asks for the SQL mode that the product relies on. */
let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
const select = 'SELECT @@SESSION.sql_mode AS mode';

test('Every kind of connection has backslash escapes and errors for values that do not fit', async () => {
  const { pool, sequelize } = environment.database;
  const modes = await Promise.all([
    pool.query(select).then(([rows]) => rows),
    sequelize.query(select).then(([rows]) => rows),
  ]);
  expect(modes).toEqual([[{ mode }], [{ mode }]]);
});
