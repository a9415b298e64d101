import { randomBytes } from 'node:crypto';
import type { Connection } from 'mysql2/promise';
import { type DumpedDatabases, dumpedDatabases } from '../../builders/dumpedDatabases.ts';

// A database is dumped and restored on the server of this test run: MariaDB or MySQL.

let databases: DumpedDatabases;
let isMariaDb: boolean;
beforeAll(async () => {
  databases = await dumpedDatabases();
  ({ isMariaDb } = databases);
});
afterAll(() => databases.close());

async function rowsOf(connection: Connection, sql: string): Promise<unknown> {
  return (await connection.query(sql))[0];
}

test('a restore has the same values of all types', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'");
  await source.query(`CREATE TABLE \`odd\`\`name\` (
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY AUTO_INCREMENT, small TINYINT, price DECIMAL(30, 10), f FLOAT, d DOUBLE,
    flags BIT(10), day DATE, at DATETIME(6), stamp TIMESTAMP NULL, span TIME, born YEAR,
    words TEXT CHARACTER SET utf8mb4, old VARCHAR(20) CHARACTER SET latin1, raw BLOB, fixed BINARY(4),
    kind ENUM('a', 'b''c'), some SET('x', 'y'), doc JSON, place POINT, total INT AS (small * 2) STORED,
    \`semi;colon\` VARCHAR(50))`);
  await source.query(
    `INSERT INTO \`odd\`\`name\` (id, small, price, f, d, flags, day, at, stamp, span, born, words, old, raw, fixed, kind, some,
        doc, place, \`semi;colon\`)
      VALUES (0, -1, 12345678901234567890.0123456789, 0.1, 1e-300, b'1000000001', '2026-02-28', '0000-00-00 00:00:00',
        '2026-03-29 02:30:00', '-838:59:59', 2026, ?, 'ärger', ?, ?, 'b''c', 'x,y', '{"a": [1, null, "ü"]}',
        ST_GeomFromText('POINT(1 2)'), ?),
      (18446744073709551615, NULL, NULL, 16777216, 0.1, NULL, NULL, '2026-01-01 12:00:00.123456', NULL, NULL, NULL, '', '',
        '', '', NULL, '', NULL, NULL, NULL)`,
    [
      '😀 \\\' " \n\r\0 \u001a ; -- \\! echo',
      randomBytes(300),
      Buffer.from([0, 39, 92, 255]),
      '\\! touch /tmp/x; DELIMITER ;',
    ],
  );
  const shown = 'SELECT *, HEX(raw), HEX(flags), ST_AsText(place), f + 0E0 FROM `odd``name` ORDER BY id';
  const before = await rowsOf(source, shown);
  const target = await databases.connect(await databases.restore(await databases.dump(database)));
  expect(await rowsOf(target, shown)).toEqual(before);
  const shownTable = 'SHOW CREATE TABLE `odd``name`';
  expect(await rowsOf(target, shownTable)).toEqual(await rowsOf(source, shownTable));
});

test('restored views, routines, triggers and keys work after the original database is gone', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  for (const sql of [
    'CREATE TABLE authors (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50))',
    'CREATE TABLE books (id INT PRIMARY KEY AUTO_INCREMENT, author INT, title VARCHAR(50), FOREIGN KEY (author) REFERENCES authors (id))',
    'CREATE TABLE changes (words VARCHAR(100))',
    'CREATE FUNCTION shout(words VARCHAR(50)) RETURNS VARCHAR(51) DETERMINISTIC RETURN CONCAT(words, "!")',
    `CREATE PROCEDURE adds(title VARCHAR(50)) BEGIN INSERT INTO ${database.name}.books (title) VALUES (title); END`,
    'CREATE TRIGGER notes AFTER INSERT ON books FOR EACH ROW INSERT INTO changes VALUES (CONCAT("new ", NEW.title))',
    'CREATE VIEW b_titles AS SELECT shout(title) AS title FROM books',
    'CREATE VIEW a_titles AS SELECT title FROM b_titles',
    'CREATE TABLE gone (id INT)',
    'CREATE VIEW broken AS SELECT * FROM gone',
    'DROP TABLE gone',
    "INSERT INTO authors (name) VALUES ('Ada')",
    "INSERT INTO books (author, title) VALUES (1, 'Notes')",
    ...(isMariaDb ? ['CREATE SEQUENCE numbers START WITH 5', 'DO NEXTVAL(numbers)'] : []),
  ]) {
    await source.query(sql);
  }
  const restored = await databases.restore(await databases.dump(database));
  await databases.align({ ...database, state: 'gone' });
  const target = await databases.connect(restored);
  expect(await rowsOf(target, 'SELECT * FROM changes')).toEqual([{ words: 'new Notes' }]); // the restore ran no trigger
  await target.query("CALL adds('More')");
  expect(await rowsOf(target, 'SELECT * FROM a_titles ORDER BY title')).toEqual([
    { title: 'More!' },
    { title: 'Notes!' },
  ]);
  expect(await rowsOf(target, 'SELECT COUNT(*) AS n FROM changes')).toEqual([{ n: 2 }]);
  await expect(target.query("INSERT INTO books (author, title) VALUES (9, 'Nobody')")).rejects.toMatchObject({
    errno: 1452,
  });
  const sql = 'SELECT DISTINCT DEFINER AS definer FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE()';
  expect(await rowsOf(target, sql)).toEqual([{ definer: `${restored.accounts[0]?.user}@%` }]);
  if (isMariaDb)
    expect(Number(((await rowsOf(target, 'SELECT NEXTVAL(numbers) AS n')) as { n: number }[])[0]?.n)).toBeGreaterThan(
      5,
    );
});

test('a restore has a large row and many small rows', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE files (id INT PRIMARY KEY, raw LONGBLOB, words LONGTEXT)');
  const raw = randomBytes(4_000_000);
  await source.query('INSERT INTO files VALUES (1, ?, ?)', [raw, 'ü'.repeat(2_000_000)]);
  await source.query('CREATE TABLE many (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(100))');
  await source.query("INSERT INTO many (words) VALUES ('some words'), ('some more')");
  for (let times = 0; times < 13; times++) await source.query('INSERT INTO many (words) SELECT words FROM many');
  const sum = 'SELECT COUNT(*) AS n, SUM(CRC32(CONCAT(id, words))) AS sum FROM many';
  const before = await rowsOf(source, sum);
  const target = await databases.connect(await databases.restore(await databases.dump(database)));
  expect(await rowsOf(target, sum)).toEqual(before);
  const [[file]] = (await target.query('SELECT * FROM files')) as unknown as [[{ raw: Buffer; words: string }]];
  expect(file.raw.equals(raw)).toBe(true);
  expect(file.words).toBe('ü'.repeat(2_000_000));
});

test('a dump is consistent as of one moment', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE a (id INT)');
  await source.query('CREATE TABLE b (id INT)');
  const bytes = await databases.read(database, async (lines) => {
    const chunks: Buffer[] = [];
    for await (const line of lines) {
      // Insert after the dump has begun and before it reaches the second table.
      if (chunks.length === 0) await source.query('INSERT INTO b VALUES (1)');
      chunks.push(line);
    }
    return Buffer.concat(chunks);
  });
  const target = await databases.connect(await databases.restore(bytes));
  expect(await rowsOf(target, 'SELECT * FROM b')).toEqual([]);
});

test('a forged dump runs only with the rights of its tenant', async () => {
  const victim = await databases.make();
  await (await databases.connect(victim)).query('CREATE TABLE private (id INT)');
  const begin = JSON.stringify({ begin: 'atrium-database/1', name: 'other' });
  const evil = (sql: string) => Buffer.from([begin, JSON.stringify({ rows: sql }), '{"end":true}', ''].join('\n'));
  for (const sql of [
    `DROP TABLE ${victim.name}.private`,
    'SELECT * FROM mysql.user',
    "CREATE USER 'evil'@'%'",
    "SELECT 1 INTO OUTFILE '/tmp/atrium-evil'",
    '\\! touch /tmp/atrium-evil',
    'SELECT 1; SELECT 2',
  ]) {
    await expect(databases.restore(evil(sql))).rejects.toThrow('The server for databases of spaces failed');
  }
});

test("the keeper account can read, but not write or run the tenant's routines", async () => {
  const database = await databases.make();
  const owner = await databases.connect(database);
  await owner.query('CREATE TABLE notes (id INT)');
  await owner.query('CREATE FUNCTION adds() RETURNS INT BEGIN INSERT INTO notes VALUES (1); RETURN 1; END');
  const keeper = await databases.connectKeeper(database);
  for (const sql of [
    'INSERT INTO notes VALUES (1)',
    'SELECT adds()',
    'DROP TABLE notes',
    'CREATE TABLE more (id INT)',
  ]) {
    await expect(keeper.query(sql)).rejects.toMatchObject({ errno: expect.any(Number) });
  }
  expect(await rowsOf(keeper, 'SELECT * FROM notes')).toEqual([]);
});

test('a truncated dump is refused, and an interrupted restore starts again', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE notes (id INT PRIMARY KEY)');
  await source.query('INSERT INTO notes VALUES (1), (2)');
  const bytes = await databases.dump(database);
  const lines = bytes.toString().trimEnd().split('\n');
  const half = databases.wanted();
  const cut = Buffer.from(`${lines.slice(0, -1).join('\n')}\n`);
  await expect(databases.fill(half, (take) => take(once(cut)))).rejects.toThrow('DUMP_IS_NOT_WHOLE');

  await databases.fill(half, (take) => take(once(bytes)));
  expect(await rowsOf(await databases.connect(half), 'SELECT * FROM notes')).toEqual([{ id: 1 }, { id: 2 }]);
});

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

test('a worker that was given up during a restore writes nothing more to the database', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE notes (words VARCHAR(50))');
  await source.query("INSERT INTO notes VALUES ('once')");
  const [begin = '', ...rest] = (await databases.dump(database)).toString().trimEnd().split('\n');
  const target = databases.wanted();
  const frozenAt = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  const slow = async function* () {
    for (const line of [begin, ...rest]) {
      yield Buffer.from(`${line}\n`);
      // Everything except the rows is restored.
      if (!line.includes('CREATE TABLE')) continue;
      frozenAt.resolve();
      await thawed.promise;
    }
  };
  const frozen = databases.fill(target, (take) => take(slow()));
  const refused = expect(frozen).rejects.toThrow('The server for databases of spaces failed');
  await frozenAt.promise;
  await databases.fill(target, (take) => take(once(Buffer.from([begin, ...rest, ''].join('\n')))));
  thawed.resolve();
  await refused;
  expect(await rowsOf(await databases.connect(target), 'SELECT * FROM notes')).toEqual([{ words: 'once' }]);
});

test('a later restore creates the database again, and the earlier account cannot enter', async () => {
  const database = await databases.make();
  await (await databases.connect(database)).query('CREATE TABLE notes (words VARCHAR(50))');
  const bytes = await databases.dump(database);
  const target = databases.wanted();
  await databases.fill(target, (take) => take(once(bytes)));
  const former = { ...target };
  await databases.fill(target, (take) => take(once(bytes)));
  await expect(databases.connect(former)).rejects.toMatchObject({ errno: 1044 });
  await expect(databases.connect(target)).resolves.toBeDefined();
});

test('a worker that was given up during a dump reads no more once another begins', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE notes (words LONGTEXT)');
  for (let rows = 0; rows < 8; rows++) await source.query("INSERT INTO notes VALUES (REPEAT('x', 4000000))");
  const frozenAt = Promise.withResolvers<void>();
  const thawed = Promise.withResolvers<void>();
  const frozen = databases.read(database, async (lines) => {
    for await (const line of lines) {
      if (line.length < 4_000_000) continue;
      frozenAt.resolve();
      await thawed.promise;
    }
  });
  const refused = expect(frozen).rejects.toThrow('The server for databases of spaces failed');
  await frozenAt.promise;
  expect((await databases.dump(database)).length).toBeGreaterThan(32_000_000);
  thawed.resolve();
  await refused;
});

test('a dump does not read a view that has replaced a table meanwhile', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE a (id INT)');
  await source.query('CREATE TABLE b (id INT)');
  await source.query('CREATE TABLE c (id INT)');
  const lines = await databases.read(database, async (all) => {
    const read: string[] = [];
    for await (const line of all) {
      read.push(line.toString());
      if (!read.at(-1)?.includes('CREATE TABLE `a`')) continue;
      await source.query('DROP TABLE b');
      await source.query('CREATE VIEW b AS SELECT SLEEP(600) AS id');
    }
    return read.join('');
  });
  expect(lines).toContain('CREATE TABLE `c`');
  expect(lines).not.toContain('`b`');
});

test('a dump releases each table as soon as it has been read', async () => {
  const database = await databases.make();
  const source = await databases.connect(database);
  await source.query('CREATE TABLE a (id INT)');
  await source.query('CREATE TABLE b (id INT)');
  await source.query('SET SESSION lock_wait_timeout = 1');
  await databases.read(database, async (all) => {
    for await (const line of all) {
      if (line.includes('CREATE TABLE `b`')) await source.query('ALTER TABLE a ADD COLUMN more INT');
    }
  });
});
