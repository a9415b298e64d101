import type { PoolConnection, RowDataPacket } from 'mysql2/promise';
import { QueryTypes } from 'sequelize';
import { newId } from '../../../base/ids.ts';
import { transaction } from '../../../models/database/database.ts';
import { execute } from '../../../models/database/sql.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { waitFor } from '../../support/waitFor.ts';

/** MySQL ends one of two transactions that wait for each other. The work of the ended one is run again. */
let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const lockNotAvailable = [1205, 3572];
const rename = 'UPDATE users SET name = CONCAT(name, ?) WHERE id IN (?, ?) ORDER BY id';

/** The ids of new users, in order. */
async function addUsers(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('user')).sort();
  const rows = ids.map((id) => [id, `${id}@example.com`, 'Ann', new Date()]);
  await environment.database.pool.query('INSERT INTO users (id, email, name, created_at) VALUES ?', [rows]);
  return ids;
}

async function isLocked(connection: PoolConnection, id: string): Promise<boolean> {
  try {
    await connection.query('SELECT id FROM users WHERE id = ? FOR UPDATE NOWAIT', [id]);
    return false;
  } catch (error) {
    if (lockNotAvailable.includes((error as { errno?: number }).errno ?? 0)) return true;
    throw error;
  }
}

/**
 * Runs `work`, which renames two users in order, against a transaction that renames them in the other order. That
 * transaction has written more, so the server ends the one of `work`. Returns the names that are left.
 */
async function collide(work: (first: string, second: string) => Promise<unknown>): Promise<string[]> {
  const { pool } = environment.database;
  const [first = '', second = '', ...others] = await addUsers(50);
  const [other, looking] = [await pool.getConnection(), await pool.getConnection()];
  await other.query('START TRANSACTION');
  await other.query("UPDATE users SET name = CONCAT(name, '+other') WHERE id IN (?)", [[second, ...others]]);
  const working = work(first, second);
  await waitFor('the work to have locked the first row', () => isLocked(looking, first));
  await other.query("UPDATE users SET name = CONCAT(name, '+other') WHERE id = ?", [first]);
  await other.query('COMMIT');
  await working;
  for (const each of [other, looking]) each.release();
  const [rows] = await pool.query<RowDataPacket[]>('SELECT name FROM users WHERE id IN (?)', [[first, second]]);
  return rows.map(({ name }) => name as string);
}

const both = ['Ann+other+work', 'Ann+other+work'];

test('A deadlocked statement of the plain pool is run again', async () => {
  const { pool } = environment.database;
  const queried = await collide((...ids) => pool.query(rename, ['+work', ...ids]));
  const executed = await collide((...ids) => pool.execute(rename, ['+work', ...ids]));
  expect([queried, executed]).toEqual([both, both]);
});

test('A deadlocked statement of Sequelize outside of a transaction is run again', async () => {
  const { sequelize } = environment.database;
  const names = await collide((...ids) =>
    sequelize.query(rename, { replacements: ['+work', ...ids], type: QueryTypes.UPDATE }),
  );
  expect(names).toEqual(both);
});

test('A deadlocked transaction is run again as a whole, also if Sequelize runs its statement', async () => {
  const { database } = environment;
  const { sequelize } = database;
  const plain = await collide((...ids) => transaction(database, (tx) => execute(tx, rename, ['+work', ...ids])));
  const through = await collide((...ids) =>
    transaction(database, (tx) =>
      sequelize.query(rename, { replacements: ['+work', ...ids], type: QueryTypes.UPDATE, transaction: tx }),
    ),
  );
  expect([plain, through]).toEqual([both, both]);
});
