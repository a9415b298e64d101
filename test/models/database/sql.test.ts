import { raw } from 'mysql2';
import type { RowDataPacket } from 'mysql2/promise';
import { UniqueConstraintError } from 'sequelize';
import { type Database, openDatabase, transaction } from '../../../models/database/database.ts';
import {
  columnOf,
  execute,
  fieldOf,
  insert,
  type Runner,
  select,
  selectPrepared,
} from '../../../models/database/sql.ts';
import { createEmptyDatabase, createTestEnvironment } from '../../support/environment.ts';

/** Columns have snake case in SQL and camel case in TypeScript. */
let database: Database;
let drop: () => Promise<void>;
beforeAll(async () => {
  const empty = await createEmptyDatabase();
  drop = empty.drop;
  database = openDatabase({ database: { url: empty.ownerUrl, poolSize: 4, silenceMs: 15_000 } });
  await execute(
    database.pool,
    `CREATE TABLE things (
      thing_id INT AUTO_INCREMENT PRIMARY KEY,
      name VARCHAR(40) UNIQUE,
      size_in_bytes BIGINT,
      memory_mib INT,
      sealed_content BLOB,
      made_at DATETIME(3),
      left_out JSON
    )`,
  );
});
beforeEach(() => execute(database.pool, 'DELETE FROM things'));
afterAll(async () => {
  await database.close();
  await drop();
});

const full = {
  name: 'full',
  sizeInBytes: 12,
  memoryMiB: 512,
  sealedContent: Buffer.from([0, 1, 254, 255]),
  madeAt: new Date('2026-05-01T10:20:30.456Z'),
  leftOut: { ownFields: ['stay_so', { alsoThese: 1 }] },
};
const empty = { name: 'empty', sizeInBytes: null, memoryMiB: null, sealedContent: null, madeAt: null, leftOut: null };
const all = 'SELECT name, size_in_bytes, memory_mib, sealed_content, made_at, left_out FROM things ORDER BY thing_id';

/** Runs `work` on the pool, on a connection of its own, and in a transaction. */
async function onEach(work: (on: Runner) => Promise<void>): Promise<void> {
  const { pool } = database;
  await work(pool);
  const connection = await pool.getConnection();
  await work(connection).finally(() => connection.release());
  await transaction(database, work);
}

/** A database without a type for JSON returns text. */
const parsed = ({ leftOut, ...row }: RowDataPacket) => ({
  ...row,
  leftOut: typeof leftOut === 'string' ? JSON.parse(leftOut) : leftOut,
});

test('Rows are written and read with fields in camel case: numbers, bytes, times, JSON and nulls', async () => {
  await onEach(async (on) => {
    await execute(on, 'DELETE FROM things');
    const first = await insert(on, 'things', full);
    expect(await insert(on, 'things', empty)).toBe(first + 1);
    expect((await select(on, all)).map(parsed)).toEqual([full, empty]);
  });
  expect((await selectPrepared(database.pool, all, [])).map(parsed)).toEqual([full, empty]);
});

test('The values are those of the driver', async () => {
  await insert(database.pool, 'things', full);
  const [own] = await database.pool.query<RowDataPacket[]>('SELECT * FROM things');
  const [row] = await select(database.pool, 'SELECT * FROM things');
  expect(Object.values(row ?? {})).toEqual(Object.values(own[0] ?? {}));
  expect(Object.keys(own[0] ?? {})).toContain('size_in_bytes');
});

test('An UPDATE sets the columns of an object, beside other values and SQL', async () => {
  await onEach(async (on) => {
    await execute(on, 'DELETE FROM things');
    const id = await insert(on, 'things', full);
    const change = { name: raw("CONCAT('so ', 'it is')"), memoryMiB: 64, leftOut: [], size_in_bytes: 3 };
    expect((await execute(on, 'UPDATE things SET ? WHERE thing_id IN (?)', [change, [id]])).affectedRows).toBe(1);
    const row = { ...full, name: 'so it is', memoryMiB: 64, leftOut: [], sizeInBytes: 3 };
    expect((await select(on, all)).map(parsed)).toEqual([row]);
  });
});

test('A SELECT without rows returns none, and an alias keeps its name', async () => {
  await onEach(async (on) => {
    expect(await select(on, all)).toEqual([]);
    expect(await select(on, 'SELECT COUNT(*) AS howMany, NULL AS no_value FROM things')).toEqual([
      { howMany: 0, noValue: null },
    ]);
  });
});

test('Two columns of one name are an error, also when only their case differs', async () => {
  await insert(database.pool, 'things', full);
  const twice = 'The statement reads two columns as thingId. Give one of them an alias.';
  const from = 'FROM things a JOIN things b ON b.thing_id = a.thing_id';
  await onEach(async (on) => {
    await expect(select(on, `SELECT a.thing_id, b.thing_id ${from}`)).rejects.toThrow(twice);
    await expect(select(on, `SELECT a.thing_id, b.thing_id AS thingId ${from}`)).rejects.toThrow(twice);
    expect(await select(on, `SELECT a.name, b.name AS other ${from}`)).toEqual([{ name: 'full', other: 'full' }]);
  });
});

test('Every column has a field of its own', async () => {
  const { database: own, close } = await createTestEnvironment();
  const sql = 'SELECT DISTINCT COLUMN_NAME AS name FROM information_schema.columns WHERE table_schema = DATABASE()';
  const names = (await select<{ name: string }>(own.pool, sql)).map(({ name }) => name);
  await close();
  expect(names.length).toBeGreaterThan(100);
  expect(names.map((name) => columnOf(fieldOf(name)))).toEqual(names);
});

test('A duplicate of a unique column is a UniqueConstraintError everywhere', async () => {
  await insert(database.pool, 'things', full);
  await onEach((on) => expect(insert(on, 'things', full)).rejects.toThrow(UniqueConstraintError));
});
