import { noSpace } from '../../../models/drive/objectReserve.ts';
import { openEnvelope } from '../../../models/identity/index.ts';
import { areaSchemas } from '../../../models/purge.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { contentsOf, fillSpace, fillThread } from '../../builders/fullSpace.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

const ofThread = [
  ...areaSchemas.flatMap((area) => [...(area.ofTurn ?? []), ...(area.ofThread ?? [])]),
  'threads',
  'turns',
];
const removed = [...ofThread, ...areaSchemas.flatMap((area) => [...(area.ofSpace ?? []), ...(area.own ?? [])])];
const tables = [...new Set(removed)];

let product: TestProduct;
let bystander: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  bystander = await product.user();
  await fillSpace(product, bystander);
});
afterAll(() => product.close());

/** Without the reserved keys for small files, which belong to no space yet, and come and go. */
async function contents(of: readonly string[]): Promise<Record<string, string[]>> {
  const all = Object.entries(await contentsOf(product.environment.database, of));
  const isReserved = (row: string) => JSON.parse(row).space_id === noSpace;
  return Object.fromEntries(
    all.map(([table, rows]) => [table, table === 'drive_objects' ? rows.filter((row) => !isReserved(row)) : rows]),
  );
}

/** Deletes the object at a path, and waits until the purge has ended. */
async function remove(user: ChatUser, path: string): Promise<string> {
  const deleted = await user.fetch(path, { method: 'DELETE' });
  const operation = deleted.headers.get('location') ?? '';
  await waitFor('the purge', async () => (await user.get<{ status: string }>(operation)).status === 'succeeded');
  return operation.split('/').at(-1) ?? '';
}

test('A deleted space leaves only what is kept on purpose, and no row of another space is deleted', async () => {
  const user = await product.user();
  const [bare] = await Promise.all([contents(tables)]);
  await fillSpace(product, user);
  const filled = await contents(tables);
  // Each table has got new rows, so that the test sees them go.
  for (const table of tables.filter((name) => name !== 'space_members')) {
    expect([table, filled[table]?.length ?? 0]).not.toEqual([table, bare[table]?.length ?? 0]);
  }
  const operationId = await remove(user, `/api/spaces/${user.spaceId}`);
  const left = await contents([...tables, 'spaces', 'operations']);
  const own = (table: string) => (left[table] ?? []).filter((row) => row.includes(user.spaceId));
  for (const table of tables) {
    expect([table, own(table)]).toEqual([table, []]);
    expect([table, left[table]]).toEqual([table, (bare[table] ?? []).filter((row) => !row.includes(user.spaceId))]);
  }
  expect(own('spaces').map((row) => JSON.parse(row))).toEqual([
    expect.objectContaining({ id: user.spaceId, name: '', deleted_at: expect.any(String) }),
  ]);
  expect(own('operations').map((row) => JSON.parse(row).id)).toEqual([operationId]);
});

test('A deleted space gets no new data key', async () => {
  const user = await product.user();
  await remove(user, `/api/spaces/${user.spaceId}`);
  const { database, config } = product.environment;
  const envelope = await openEnvelope(database, config);
  await expect(envelope.seal(user.spaceId, 'secrets/TOKEN', Buffer.from('late'))).rejects.toThrow();
  expect((await contents(['data_keys'])).data_keys?.join()).not.toContain(user.spaceId);
});

test('A deleted thread leaves nothing', async () => {
  const bare = await contents(ofThread);
  const threadId = await fillThread(product, bystander);
  const filled = await contents(ofThread);
  for (const table of ofThread) expect([table, filled[table]?.length]).not.toEqual([table, bare[table]?.length]);
  await remove(bystander, `/api/threads/${threadId}`);
  expect(await contents(ofThread)).toEqual(bare);
});
