import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Connection } from 'mysql2/promise';
import { type Access, accessOf } from '../../api/frame/auth/access.ts';
import { loadContract } from '../../api/frame/contract.ts';
import { accessTable } from '../../api/registry.ts';
import { fillSpace } from '../builders/fullSpace.ts';
import { anyBodyFor, objectsFor, pathWith } from '../builders/operationCall.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { buildPeople, buildWorld, type Kind } from '../builders/world.ts';
import { multiplyRows, openAsOwner, planOf } from '../support/plans.ts';
import { kindOf } from '../support/recordStatements.ts';
import { tenantServer } from '../support/runServer.ts';

// Every operation and the sweeps run once. On full tables, none of their statements may read a whole table or sort many
// rows.

/** Statements that may do so, each with the reason. */
const allowed: { beginning: string; why: string }[] = [
  {
    beginning: 'SELECT b.space_id, s.name, b.available AS availableMicro FROM billing_balances b',
    why: 'A sweep looks at a row of each space. An index on the balance would cost every model call more.',
  },
  {
    beginning: 'SELECT CAST(COALESCE(SUM(initial_credits)',
    why: 'A row of each space, once for each space that is set up with credits by its user.',
  },
  {
    beginning: 'SELECT `id`, `algorithm`, `public_jwk`',
    why: 'The signing keys of an installation are a handful, and read when a process starts.',
  },
  {
    beginning: 'SELECT h.id, h.drivers, h.memory_mib',
    why: 'The hosts of computers are a handful, and all of them are compared.',
  },
  {
    beginning: 'SELECT id, address, drivers, cpu_milli',
    why: 'The same, to find whether one has a base.',
  },
  {
    beginning: 'SELECT h.id FROM computer_hosts h WHERE h.seen_at <',
    why: 'The same, once a sweep.',
  },
  {
    beginning: 'DELETE FROM computer_remains WHERE since <',
    why: 'The homes that hosts still have to remove are a handful.',
  },
  {
    beginning: 'SELECT name FROM schema_migrations ORDER BY name',
    why: 'A row for each step of the schema, read when a process starts.',
  },
  {
    beginning: 'SELECT id FROM ( SELECT id FROM api_keys WHERE revoked_at <',
    why: 'MySQL hashes all keys once, where many are to go, rather than look up the children of each.',
  },
];

/** Rows that a statement may sort. */
const mostSorted = 500;
const callsAtOnce = 6;

let product: TestProduct;
let connection: Connection;
let statements: string[];
const folder = mkdtempSync(join(tmpdir(), 'atrium-statements-'));
/** Closes what was opened, even if `beforeAll` fails midway. */
const opened = new AsyncDisposableStack();
opened.defer(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  const file = join(folder, 'statements.json');
  product = await buildProduct({ RECORD_STATEMENTS: file, ...(await tenantServer()) });
  opened.defer(() => product.close());
  await callEverything();
  await fillSpace(product, await product.user());
  await product.process.stop();
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[];
  // Leaves out statements to the tenant server, which has none of the product's tables.
  statements = all.filter((sql) => !/\b(mysql|information_schema|performance_schema)\./.test(sql));
  connection = await openAsOwner(product.environment.environment.ATRIUM_DATABASE_MIGRATION_URL);
  opened.defer(() => connection.end());
  await multiplyRows(connection);
}, 400_000);

afterAll(() => opened.disposeAsync());

/** Calls each operation of the contract as a caller who has access. */
async function callEverything(): Promise<void> {
  const people = await buildPeople(product.identity);
  const rest = loadContract().operations.values();
  const lane = async () => {
    for (const operation of rest) {
      const world = await buildWorld(product, people);
      const path = pathWith(operation, await objectsFor(operation, world));
      const body = await anyBodyFor(operation, world);
      const response = await world.fetch(callerOf(accessOf(accessTable, operation.id)), operation.method, path, body);
      await response.body?.cancel();
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, lane));
}

function callerOf(access: Access): Kind {
  if (access === 'self' || access === 'threadOwner') return 'viewer';
  return access === 'editorsOwn' ? 'editor' : 'owner';
}

/** The faults of a statement's plan. */
async function faultsOf(sql: string): Promise<string[]> {
  const steps = (await planOf(connection, sql)) ?? [];
  return steps.flatMap(({ table, type, rows, extra }) => {
    // A derived table is only as large as what the statement has read for it.
    if (table.startsWith('<')) return [];
    if (type === 'ALL' || type === 'index') return [`reads all of ${table} (${rows} rows)`];
    return extra.includes('filesort') && rows > mostSorted ? [`sorts ${rows} rows of ${table}`] : [];
  });
}

test('The check finds a statement without an index, and accepts one with an index', async () => {
  expect(await faultsOf("SELECT id FROM turns WHERE error_detail = 'x'")).toHaveLength(1);
  expect(await faultsOf("DELETE FROM operations WHERE error_detail = 'x' LIMIT 1000")).toHaveLength(1);
  expect(await faultsOf("SELECT id FROM turns WHERE id = 'x'")).toEqual([]);
  expect(kindOf("SELECT 'it''s', 12 FROM t WHERE id IN ('a', 'b')")).toBe(
    kindOf("SELECT '', 3 FROM t WHERE id IN ('c')"),
  );
});

test('No statement of the product reads a whole table', async () => {
  expect(statements.length).toBeGreaterThan(250);
  const found: string[] = [];
  const met = new Set<string>();
  for (const sql of statements) {
    const text = sql.replace(/\s+/g, ' ').trim();
    const faults = await faultsOf(sql);
    const exception = allowed.find(({ beginning }) => text.startsWith(beginning));
    if (exception !== undefined) met.add(exception.beginning);
    else found.push(...faults.map((fault) => `${fault}: ${text}`));
  }
  expect(found).toEqual([]);
  // Exceptions for statements that are no longer sent must be removed.
  expect(allowed.map(({ beginning }) => beginning).filter((beginning) => !met.has(beginning))).toEqual([]);
});
