import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';

const root = join(import.meta.dirname, '..', '..');
const cache = join(root, 'node_modules', '.cache', 'atrium-tests');

/** Names the file with the statements to the test files. */
export const schemaVariable = 'ATRIUM_TEST_SCHEMA';

/** What a migration makes anew in each database, and no two test databases shall share. */
const fresh = ["UPDATE billing_state SET value = HEX(RANDOM_BYTES(32)) WHERE name = 'developmentSecret'"];

/**
 * The file with the statements that make a database just as the migrations do, in a fraction of their time. It is taken
 * of a database that `migrated` makes, and kept for as long as the migrations stay the same.
 */
export async function prepareSnapshot(
  serverVersion: string,
  migrated: (work: (url: string) => Promise<string[]>) => Promise<string[]>,
): Promise<string> {
  // Each server writes a table's definition in its own words.
  const hash = createHash('sha256').update(serverVersion);
  for (const file of [...globSync('models/migrat*/**/*.ts', { cwd: root }), 'models/migrations/migrate.ts'].sort()) {
    hash.update(file).update(readFileSync(join(root, file)));
  }
  const path = join(
    cache,
    `schema-${hash
      .update(readFileSync(import.meta.filename))
      .digest('hex')
      .slice(0, 16)}.sql`,
  );
  if (existsSync(path)) return path;
  const statements = [...(await migrated((url) => withConnection(url, readSchema))), ...fresh];
  mkdirSync(dirname(path), { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, `${statements.join(';\n')};\n`);
  renameSync(unfinished, path);
  return path;
}

/** Makes an empty database into what the snapshot was taken of. */
export async function restoreSnapshot(url: string, path: string): Promise<void> {
  await withConnection(url, (connection) => connection.query(readFileSync(path, 'utf8')));
}

/** The statements that make a database's tables, their rows and their triggers. */
export async function readSchema(connection: Connection): Promise<string[]> {
  const rowsOf = async (statement: string) => (await connection.query<RowDataPacket[]>(statement))[0];
  const statements = ['SET FOREIGN_KEY_CHECKS = 0'];
  for (const table of (await rowsOf('SHOW TABLES')).map((row) => String(Object.values(row)[0]))) {
    const [made] = await rowsOf(`SHOW CREATE TABLE ${table}`);
    // MySQL repeats the character set where a collation was named by itself.
    statements.push(String(made?.['Create Table']).replaceAll(' CHARACTER SET utf8mb4 COLLATE ', ' COLLATE '));
    for (const row of await rowsOf(`SELECT * FROM ${table}`)) {
      const values = Object.values(row).map((value) => connection.escape(value));
      statements.push(`INSERT INTO ${table} VALUES (${values.join(', ')})`);
    }
  }
  for (const { Trigger: name } of await rowsOf('SHOW TRIGGERS')) {
    const [made] = await rowsOf(`SHOW CREATE TRIGGER ${name}`);
    // Its definer is whoever restores it.
    statements.push(
      String(made?.['SQL Original Statement'])
        .replace(/ DEFINER=\S+/, '')
        .replace(/;$/, ''),
    );
  }
  return statements;
}

export async function withConnection<T>(uri: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = await mysql.createConnection({ uri, multipleStatements: true, dateStrings: true, timezone: 'Z' });
  try {
    return await work(connection);
  } finally {
    await connection.end();
  }
}
