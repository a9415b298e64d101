import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';

const root = join(import.meta.dirname, '..', '..');
const cache = join(root, 'node_modules', '.cache', 'atrium-tests');

/** The variable with the path of the snapshot, for test files. */
export const schemaVariable = 'ATRIUM_TEST_SCHEMA';

/** Values that migrations make anew in each database, and that test databases must not share. */
const fresh = ["UPDATE billing_state SET value = HEX(RANDOM_BYTES(32)) WHERE name = 'developmentSecret'"];

/**
 * The file with statements that make a database exactly as the migrations do, but much faster. It is taken from a
 * database that `migrated` makes, and kept as long as the migrations do not change.
 */
export async function prepareSnapshot(
  serverVersion: string,
  migrated: (work: (url: string) => Promise<string[]>) => Promise<string[]>,
): Promise<string> {
  // Each kind of server writes table definitions differently.
  const hash = createHash('sha256').update(serverVersion);
  for (const file of globSync(['models/migrations/*.ts', 'models/**/{schema,sharedSchema}.ts'], { cwd: root }).sort()) {
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

/** Turns an empty database into the state of the snapshot. */
export async function restoreSnapshot(url: string, path: string): Promise<void> {
  await withConnection(url, (connection) => connection.query(readFileSync(path, 'utf8')));
}

/** The statements that make a database's tables, their rows and their triggers. */
export async function readSchema(connection: Connection): Promise<string[]> {
  const rowsOf = async (statement: string) => (await connection.query<RowDataPacket[]>(statement))[0];
  const statements = ['SET FOREIGN_KEY_CHECKS = 0'];
  for (const table of (await rowsOf('SHOW TABLES')).map((row) => String(Object.values(row)[0]))) {
    const [made] = await rowsOf(`SHOW CREATE TABLE ${table}`);
    // MySQL repeats the character set if a collation was given by name.
    statements.push(String(made?.['Create Table']).replaceAll(' CHARACTER SET utf8mb4 COLLATE ', ' COLLATE '));
    for (const row of await rowsOf(`SELECT * FROM ${table}`)) {
      const values = Object.values(row).map((value) => connection.escape(value));
      statements.push(`INSERT INTO ${table} VALUES (${values.join(', ')})`);
    }
  }
  for (const { Trigger: name } of await rowsOf('SHOW TRIGGERS')) {
    const [made] = await rowsOf(`SHOW CREATE TRIGGER ${name}`);
    // The account that restores the trigger becomes its definer.
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
