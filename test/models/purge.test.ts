import { areaSchemas } from '../../models/purge.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

const columnsOfTables = async () => {
  const [rows] = await environment.database.pool.query(
    `SELECT table_name AS tableName, column_name AS columnName FROM information_schema.columns WHERE table_schema = DATABASE()`,
  );
  const byTable = Map.groupBy(rows as { tableName: string; columnName: string }[], ({ tableName }) => tableName);
  return new Map([...byTable].map(([table, columns]) => [table, columns.map(({ columnName }) => columnName)]));
};

test('Each table belongs to one area, which removes it with its space or keeps it for a stated reason', async () => {
  const declared = areaSchemas.flatMap(({ ofTurn = [], ofThread = [], ofSpace = [], own = [], kept = {} }) => [
    ...ofTurn,
    ...ofThread,
    ...ofSpace,
    ...own,
    ...Object.keys(kept),
  ]);
  const tables = [...(await columnsOfTables()).keys()];
  expect(declared.toSorted()).toEqual(tables.toSorted());
  for (const { kept = {} } of areaSchemas) expect(Object.values(kept)).toEqual(Object.values(kept).filter(Boolean));
});

test.each([
  ['ofTurn', 'turn_id'],
  ['ofThread', 'thread_id'],
  ['ofSpace', 'space_id'],
] as const)('Tables in %s have a column %s', async (by, column) => {
  const columns = await columnsOfTables();
  const tables = areaSchemas.flatMap((area) => area[by] ?? []);
  expect(tables.filter((table) => columns.get(table)?.includes(column) !== true)).toEqual([]);
});
