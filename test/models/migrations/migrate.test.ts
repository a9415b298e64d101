import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';
import { type Database, openDatabase } from '../../../models/database/database.ts';
import { migrations } from '../../../models/migrations/index.ts';
import {
  assertKnownSchema,
  MigrationLockError,
  migrate,
  UnknownSchemaError,
} from '../../../models/migrations/migrate.ts';
import { createEmptyDatabase } from '../../support/environment.ts';
import { readSchema } from '../../support/schemaSnapshot.ts';

/** An empty database, and a second connection that stands for another process. */
async function setUp() {
  const { ownerUrl: url, drop } = await createEmptyDatabase();
  const database = openDatabase({ database: { url, poolSize: 4, silenceMs: 15_000 } });
  const other = await mysql.createConnection(url);
  const close = async () => {
    await Promise.all([database.close(), other.end()]);
    await drop();
  };
  return { database, other, close };
}

const tablesOf = async (database: Database) => (await database.pool.query<RowDataPacket[]>('SHOW TABLES'))[0];

/** Takes the lock of a migration of this connection's database. The server computes the name of the lock. */
async function holdLock(connection: Connection): Promise<void> {
  const [rows] = await connection.query<RowDataPacket[]>(
    "SELECT GET_LOCK(CONCAT('atrium_migrate_', LEFT(SHA2(DATABASE(), 256), 40)), 0) AS taken",
  );
  expect(rows[0]?.taken).toBe(1);
}

test('A migration that does not get its lock fails, names the holder, and changes nothing', async () => {
  const { database, other, close } = await setUp();
  try {
    await holdLock(other);
    const attempt = migrate(database, { lockTimeoutSeconds: 1 });
    await expect(attempt).rejects.toThrow(MigrationLockError);
    await expect(attempt).rejects.toThrow(
      `is being migrated by another process (connection ${other.threadId}), which has not finished within 1 s.`,
    );
    expect(await tablesOf(database)).toEqual([]);

    await other.query('DO RELEASE_ALL_LOCKS()');
    expect(await migrate(database, { lockTimeoutSeconds: 1 })).toEqual(migrations.map(({ name }) => name));
  } finally {
    await close();
  }
});

test('A migration does not wait for a migration of another database on the same server', async () => {
  const [one, two] = await Promise.all([setUp(), setUp()]);
  try {
    await holdLock(one.other);
    expect(await migrate(two.database, { lockTimeoutSeconds: 0 })).toHaveLength(migrations.length);
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
});

test('One of several concurrent migrations does the work, and the others find it done', async () => {
  const { database, close } = await setUp();
  try {
    const ran = await Promise.all([1, 2, 3].map(() => migrate(database)));
    expect(ran.flat()).toEqual(migrations.map(({ name }) => name));
  } finally {
    await close();
  }
});

test('A migration that has lost its lock stops', async () => {
  const { database, other, close } = await setUp();
  const [first] = migrations;
  if (first === undefined) throw new Error('There are no migrations.');
  const run = first.up.bind(first);
  const step = jest.spyOn(first, 'up').mockImplementation(async (queryInterface) => {
    await run(queryInterface);
    const [rows] = await other.query<RowDataPacket[]>(
      "SELECT IS_USED_LOCK(CONCAT('atrium_migrate_', LEFT(SHA2(DATABASE(), 256), 40))) AS owner",
    );
    await other.query(`KILL ${rows[0]?.owner}`);
  });
  try {
    await expect(migrate(database)).rejects.toThrow();
    const [rows] = await database.pool.query<RowDataPacket[]>('SELECT name FROM schema_migrations');
    expect(rows.map(({ name }) => name)).toEqual([first.name]);
  } finally {
    step.mockRestore();
    await close();
  }
});

test('An older version refuses a database that a newer one has migrated, and names the newer version', async () => {
  const { database, close } = await setUp();
  try {
    await assertKnownSchema(database); // an empty database is accepted
    await migrate(database);
    await assertKnownSchema(database);
    await database.pool.query("INSERT INTO schema_migrations VALUES ('9998-next', NOW()), ('9999-last', NOW())");
    await database.pool.query("INSERT INTO program_versions VALUES ('99.1.0', '2099-01-01')");
    const refusal = /newer Atrium \(99\.1\.0\): this one is \d.*does not know the step 9998-next and 1 more/;
    await expect(migrate(database)).rejects.toThrow(UnknownSchemaError);
    await expect(migrate(database)).rejects.toThrow(refusal);
    await expect(assertKnownSchema(database)).rejects.toThrow(refusal);
  } finally {
    await close();
  }
});

test('A database from before the first release is refused, and the error says so', async () => {
  const { database, close } = await setUp();
  try {
    await migrate(database);
    await database.pool.query("INSERT INTO schema_migrations VALUES ('0001-identity', NOW()), ('0002-chat', NOW())");
    const refusal = 'The database was made by an Atrium from before the first release';
    await expect(migrate(database)).rejects.toThrow(UnknownSchemaError);
    await expect(migrate(database)).rejects.toThrow(refusal);
    await expect(assertKnownSchema(database)).rejects.toThrow(refusal);
  } finally {
    await close();
  }
});

test('Every migration step can run again without changing the schema', async () => {
  const { database, other, close } = await setUp();
  try {
    await migrate(database);
    const before = await readSchema(other);
    for (const { up } of migrations) await up(database.sequelize.getQueryInterface());
    expect(await readSchema(other)).toEqual(before);
  } finally {
    await close();
  }
});
