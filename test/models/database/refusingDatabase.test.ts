import type { PoolConnection } from 'mysql2/promise';
import { transaction } from '../../../models/database/database.ts';
import { isDatabaseUnavailable } from '../../../models/database/unavailable.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

/** A database that runs, but refuses statements that it accepts at other times. */
let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test('A read-only server counts as unavailable for writes', async () => {
  const insert = "INSERT INTO schema_migrations VALUES ('refused', UTC_TIMESTAMP(3))";
  const { database } = environment;
  const plain = await database.pool.getConnection();
  await plain.query('START TRANSACTION READ ONLY');
  const refused = await errorOf(plain.query(insert));
  await plain.query('ROLLBACK');
  plain.release();
  expect(refused).toMatchObject({ errno: 1792 });
  expect(isDatabaseUnavailable(refused)).toBe(true);
});

test('The check reports a read-only server and drops its connections', async () => {
  const { database } = environment;
  const all = await Promise.all(Array.from({ length: 5 }, () => database.pool.getConnection()));
  for (const connection of all) await connection.query('SET SESSION TRANSACTION READ ONLY');
  for (const connection of all) connection.release();
  const refused = await errorOf(database.check(5_000));
  expect([isDatabaseUnavailable(refused), refused]).toMatchObject([true, { errno: 1792 }]);
  await database.check(5_000);
});

test('A statement that an operator kills may be tried again', async () => {
  const { database } = environment;
  const holder = await database.pool.getConnection();
  const waiter = await database.pool.getConnection();
  await holder.query('START TRANSACTION');
  await holder.query('SELECT * FROM schema_migrations FOR UPDATE');
  const waiting = errorOf(waiter.query('SELECT * FROM schema_migrations FOR UPDATE'));
  await ended(holder, waiter, waiting);
  await holder.query('ROLLBACK');
  holder.release();
  waiter.destroy();
  const error = await waiting;
  expect(error).toMatchObject({ errno: 1317 });
  expect(isDatabaseUnavailable(error)).toBe(true);
});

/** Refusals that a test cannot cause on a shared server. */
test.each([1021, 1053, 1114, 1290, 1836, 1927, 3101])(
  'Error %i means an unavailable database, from either pool',
  async (errno) => {
    const { database } = environment;
    const refuse = `SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'Not now.'`;
    const plain = await errorOf(database.pool.query(refuse));
    const model = await errorOf(transaction(database, (tx) => database.sequelize.query(refuse, { transaction: tx })));
    expect(plain).toMatchObject({ errno });
    expect([plain, model].map(isDatabaseUnavailable)).toEqual([true, true]);
  },
);

test('An invalid statement does not mean an unavailable database', async () => {
  const { database } = environment;
  const wrong = await errorOf(database.pool.query('SELECT nothing FROM schema_migrations'));
  const plain = await errorOf(database.pool.query("SIGNAL SQLSTATE '45000'"));
  expect([wrong, plain].map(isDatabaseUnavailable)).toEqual([false, false]);
});

/** Kills the statement that `of` runs, again and again, because it may not have begun. */
async function ended(by: PoolConnection, of: PoolConnection, statement: Promise<unknown>): Promise<void> {
  let isOver = false;
  const over = statement.then(() => {
    isOver = true;
  });
  while (!isOver) {
    await by.query(`KILL QUERY ${of.threadId}`);
    await Promise.race([over, by.query('SELECT 1')]);
  }
}
