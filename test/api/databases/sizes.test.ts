import type { ChatUser } from '../../builders/chat.ts';
import { databasesOf, enter } from '../../builders/databases.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { tenantServer } from '../../support/runServer.ts';
import { waitFor } from '../../support/waitFor.ts';

// A database that has become too large takes no more writes until it is smaller again.

let product: TestProduct;
let user: ChatUser;
let own: ReturnType<typeof databasesOf>;
beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ...(await tenantServer()),
    ATRIUM_DATABASE_SIZE_MB: '4',
    ATRIUM_DATABASE_TABLES: '3',
  });
  user = await product.user();
  own = databasesOf(user);
});
afterAll(() => product.close());

const isFull = async (id: string) => {
  const { isFull, status } = await own.get(id);
  const [rows] = await product.environment.database.pool.query('SELECT due_at FROM space_databases WHERE id = ?', [id]);
  // The server has followed the row.
  return status === 'ready' && (rows as { due_at: Date | null }[])[0]?.due_at === null ? isFull : undefined;
};

test('A database with too many bytes can only be read and emptied, and is writable again once compacted', async () => {
  const { id } = await own.make('large');
  const details = await own.connection(id);
  await using first = await enter(details);
  await first.query('CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words LONGTEXT)');
  await first.query("INSERT INTO notes (words) VALUES (REPEAT('x', 9000000))");
  await waitFor('the database to be full', async () => (await isFull(id)) === true);
  expect((await own.get(id)).sizeBytes).toBeGreaterThan(4 * 1_048_576);
  await expect(first.query('SELECT 1')).rejects.toBeDefined();
  await using second = await enter(details);
  await expect(second.query("INSERT INTO notes (words) VALUES ('x')")).rejects.toMatchObject({ errno: 1142 });
  await second.query('DELETE FROM notes');
  await own.compact(id);
  await waitFor('the database to have room again', async () => (await isFull(id)) === false);
  expect((await own.get(id)).sizeBytes).toBeLessThan(4 * 1_048_576);
  await using third = await enter(details);
  await third.query("INSERT INTO notes (words) VALUES ('x')");
});

test('A database with too many tables is full until they are dropped, and its neighbour is not full', async () => {
  const [many, few] = [await own.make('many'), await own.make('few')];
  const details = await own.connection(many.id);
  await using connection = await enter(details);
  await connection.query('CREATE TABLE parts (id INT) PARTITION BY HASH (id) PARTITIONS 4');
  await waitFor('the database to be full', async () => (await isFull(many.id)) === true);
  expect(await own.get(many.id)).toMatchObject({ tableCount: 4, maxTables: 3 });
  await using again = await enter(details);
  await again.query('DROP TABLE parts');
  await waitFor('the database to have room again', async () => (await isFull(many.id)) === false);
  expect(await own.get(few.id)).toMatchObject({ isFull: false, tableCount: 0 });
  await using neighbour = await enter(await own.connection(few.id));
  await neighbour.query('CREATE TABLE notes (id INT)');
});

test('A deleted database cannot be compacted', async () => {
  const { id } = await own.make('deleted');
  await own.remove(id);
  expect(await own.refusal('POST', `/${id}/compact`)).toEqual([409, 'DATABASE_DELETED']);
});
