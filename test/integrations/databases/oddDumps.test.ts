import { randomBytes } from 'node:crypto';
import type { Connection } from 'mysql2/promise';
import { type DumpedDatabases, dumpedDatabases } from '../../builders/dumpedDatabases.ts';

// Rare features of databases survive a dump and a restore on the server of this test run: MariaDB or MySQL.

let databases: DumpedDatabases;
beforeAll(async () => {
  databases = await dumpedDatabases();
});
afterAll(() => databases.close());

async function rowsOf(connection: Connection, sql: string): Promise<unknown> {
  return (await connection.query(sql))[0];
}

/** Runs these statements in a new database, dumps it, and restores it to another. */
async function copy(statements: string[]): Promise<{ source: Connection; target: Connection }> {
  const database = await databases.make();
  const source = await databases.connect(database);
  for (const sql of statements) await source.query(sql);
  const target = await databases.connect(await databases.restore(await databases.dump(database)));
  return { source, target };
}

/** Expects the same rows from both databases. */
async function expectSame({ source, target }: { source: Connection; target: Connection }, sql: string): Promise<void> {
  expect([sql, await rowsOf(target, sql)]).toEqual([sql, await rowsOf(source, sql)]);
}

test('a restore keeps odd names, and the default character set of new tables', async () => {
  const both = await copy([
    'ALTER DATABASE CHARACTER SET latin1 COLLATE latin1_german1_ci',
    'CREATE TABLE `a?b` (`what?` VARCHAR(20) CHARACTER SET utf8mb4, `%s :x @y` INT)',
    "INSERT INTO `a?b` VALUES ('?', 1), ('ü', 2)",
    "CREATE TABLE `ü \"'/\\\\` (id INT COMMENT 'it''s; \"so\" \\\\ ')",
    'INSERT INTO `ü "\'/\\\\` VALUES (3)',
  ]);
  await expectSame(both, 'SELECT * FROM `a?b`');
  await expectSame(both, 'SHOW CREATE TABLE `ü "\'/\\\\`');
  await both.target.query('CREATE TABLE later (words VARCHAR(5))');
  await both.source.query('CREATE TABLE later (words VARCHAR(5))');
  await expectSame(both, 'SHOW CREATE TABLE later');
});

test('a restore keeps circular foreign keys, partitions, and generated or invisible columns', async () => {
  const both = await copy([
    'CREATE TABLE a (id INT PRIMARY KEY, b INT)',
    'CREATE TABLE b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES a (id))',
    'ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b (id)',
    'INSERT INTO a VALUES (1, NULL)',
    'INSERT INTO b VALUES (2, 1)',
    'UPDATE a SET b = 2',
    `CREATE TABLE parts (id INT, born YEAR, PRIMARY KEY (id, born)) PARTITION BY RANGE (born)
      (PARTITION old VALUES LESS THAN (2000), PARTITION young VALUES LESS THAN MAXVALUE)`,
    'INSERT INTO parts VALUES (1, 1990), (2, 2010)',
    `CREATE TABLE made (id INT PRIMARY KEY, hidden INT DEFAULT 7 INVISIBLE, twice INT AS (id * 2) VIRTUAL,
      thrice INT AS (id * 3) STORED, KEY by_twice (twice), said VARCHAR(40) DEFAULT (CONCAT('a', 'b')), CHECK (id > 0))`,
    'INSERT INTO made (id, hidden) VALUES (1, 8), (2, DEFAULT)',
  ]);
  for (const sql of [
    'SELECT * FROM a',
    'SELECT * FROM b',
    'SELECT * FROM parts PARTITION (young)',
    'SELECT *, hidden FROM made',
    'SHOW CREATE TABLE a',
    'SHOW CREATE TABLE b',
    'SHOW CREATE TABLE parts',
    'SHOW CREATE TABLE made',
  ]) {
    await expectSame(both, sql);
  }
});

test('a restore keeps definitions that were made in other SQL modes', async () => {
  const both = await copy([
    'CREATE TABLE notes (id INT, words VARCHAR(50))',
    "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
    `CREATE FUNCTION "says so"(w VARCHAR(20)) RETURNS VARCHAR(40) DETERMINISTIC RETURN w || '!'`,
    `CREATE TRIGGER "on notes" BEFORE INSERT ON "notes" FOR EACH ROW SET NEW.words = NEW.words || '?'`,
    `CREATE TRIGGER "after that" BEFORE INSERT ON "notes" FOR EACH ROW FOLLOWS "on notes" SET NEW.words = "says so"(NEW.words)`,
    `CREATE VIEW "seen" AS SELECT words || '.' AS words FROM "notes"`,
    ...(databases.isMariaDb
      ? [
          "SET SESSION sql_mode = 'EMPTY_STRING_IS_NULL'",
          "CREATE FUNCTION empty_is_null() RETURNS INT DETERMINISTIC RETURN '' IS NULL",
          "SET SESSION sql_mode = 'ORACLE'",
          'CREATE PACKAGE sums AS FUNCTION two RETURN INT; END',
          'CREATE PACKAGE BODY sums AS FUNCTION two RETURN INT AS BEGIN RETURN 2; END; END',
        ]
      : []),
    "SET SESSION sql_mode = ''",
    'CREATE PROCEDURE z_last() SELECT 1',
  ]);
  await both.target.query("INSERT INTO notes VALUES (1, 'so')");
  expect(await rowsOf(both.target, 'SELECT * FROM seen')).toEqual([{ words: 'so?!.' }]);
  await both.target.query('CALL z_last()');
  if (!databases.isMariaDb) return;
  expect(await rowsOf(both.target, 'SELECT empty_is_null() AS it')).toEqual([{ it: 1 }]);
  await both.target.query("SET SESSION sql_mode = 'ORACLE'");
  expect(await rowsOf(both.target, 'SELECT sums.two() AS two')).toEqual([{ two: 2 }]);
});

test('a restore has nested views, and leaves out broken views and triggers', async () => {
  const { target } = await copy([
    'CREATE TABLE notes (id INT, words VARCHAR(50))',
    'CREATE TABLE gone (id INT)',
    'CREATE VIEW c AS SELECT id FROM notes',
    'CREATE VIEW b AS SELECT id FROM c',
    'CREATE VIEW a AS SELECT id FROM b',
    'CREATE VIEW of_nothing AS SELECT id FROM gone',
    'CREATE VIEW of_that AS SELECT id FROM of_nothing',
    'CREATE TRIGGER stale BEFORE INSERT ON notes FOR EACH ROW SET NEW.words = 1',
    'CREATE TRIGGER works BEFORE INSERT ON notes FOR EACH ROW SET NEW.id = 5',
    'ALTER TABLE notes DROP COLUMN words',
    'DROP TABLE gone',
  ]);
  await target.query('INSERT INTO notes VALUES (1)');
  expect(await rowsOf(target, 'SELECT * FROM a')).toEqual([{ id: 5 }]);
  expect(
    await rowsOf(
      target,
      'SELECT TABLE_NAME AS n FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() ORDER BY 1',
    ),
  ).toEqual(['a', 'b', 'c'].map((n) => ({ n })));
});

test('a restore keeps a large row with values of many types', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query(`CREATE TABLE files (id BIGINT UNSIGNED, raw LONGBLOB, place POINT, flags BIT(12), doc JSON, f FLOAT,
    price DECIMAL(40, 10), born YEAR, at DATETIME(6), stamp TIMESTAMP(3) NULL, kind ENUM('a', 'b'), some SET('x', 'y'),
    old TEXT CHARACTER SET latin1, b BINARY(3), d DOUBLE)`);
  await source.query(
    `INSERT INTO files VALUES (18446744073709551615, ?, ST_GeomFromText('POINT(1 2)'), b'101010101010', '{"a": "ü"}', 0.1,
      123456789012345678901234567890.5, 1999, '2026-01-01 12:00:00.5', '2026-01-01 12:00:00.25', 'b', 'x,y', 'ärger',
      'ab', 1e-300)`,
    [randomBytes(2_000_000)],
  );
  const target = await databases.connect(await databases.restore(await databases.dump(database)));
  const both = { source, target };
  await expectSame(both, 'SELECT id, CRC32(raw), ST_AsText(place), HEX(flags), doc, f + 0E0, price, born FROM files');
  await expectSame(both, 'SELECT at, stamp, kind, some, old, HEX(b), d FROM files');
});

test('on MariaDB, a restore keeps sequences, rows that violate checks, and system versioning', async () => {
  if (!databases.isMariaDb) return;
  const both = await copy([
    'CREATE SEQUENCE used_up MINVALUE 1 MAXVALUE 2 NOCYCLE CACHE 1',
    'DO NEXTVAL(used_up)',
    'DO NEXTVAL(used_up)',
    'CREATE SEQUENCE large START WITH 9007199254740993 CACHE 1',
    'DO NEXTVAL(large)',
    'CREATE SEQUENCE falling START WITH 10 INCREMENT BY -3 MINVALUE -20 MAXVALUE 10 CYCLE CACHE 1',
    ...Array.from({ length: 13 }, () => 'DO NEXTVAL(falling)'),
    'CREATE TABLE numbered (id BIGINT DEFAULT NEXTVAL(large))',
    'CREATE TABLE checked (id INT CHECK (id > 0))',
    'SET SESSION check_constraint_checks = 0, innodb_strict_mode = 0',
    'INSERT INTO checked VALUES (-1)',
    `CREATE TABLE wide (${Array.from({ length: 40 }, (_, at) => `c${at} CHAR(255)`).join(', ')}) CHARACTER SET latin1`,
    'CREATE TABLE versioned (id INT) WITH SYSTEM VERSIONING',
    'INSERT INTO versioned VALUES (1)',
    'UPDATE versioned SET id = 2',
  ]);
  await expectSame(both, 'SELECT CAST(NEXTVAL(large) AS CHAR)');
  await expectSame(both, 'SELECT NEXTVAL(falling)');
  await expectSame(both, 'SELECT * FROM checked');
  await expectSame(both, 'SELECT * FROM versioned');
  await both.target.query('INSERT INTO numbered VALUES ()');
  await expect(both.target.query('SELECT NEXTVAL(used_up)')).rejects.toMatchObject({ errno: 4084 });
  await expect(both.source.query('SELECT NEXTVAL(used_up)')).rejects.toMatchObject({ errno: 4084 });
});
