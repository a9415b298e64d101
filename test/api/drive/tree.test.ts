import { buildTree, shareBudget } from '../../../models/drive/fsTree.ts';
import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { driveOf, problemOf, type TreeBody } from '../../builders/drive.ts';
import { fillFolder } from '../../builders/driveRows.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { rowsTouched } from '../../support/rowsTouched.ts';

/** GET …/drive/fs/tree. */
let product: TestProduct;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildProduct();
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

type Node = TreeBody['root'];
const tree = (query = '') => drive.get<TreeBody>(`/fs/tree?${query}`);
const text = async (query = '') => (await drive.send('GET', `/fs/tree?format=text&${query}`)).text();

/** Names below a node, each with those below it. */
function names(node: Node | undefined): unknown {
  return (node?.children ?? []).map((child) => (child.kind === 'folder' ? { [child.name]: names(child) } : child.name));
}

function child(node: Node, name: string): Node {
  const found = node.children?.find((each) => each.name === name);
  if (found === undefined) throw new Error(`There is no ${name}.`);
  return found;
}

async function folderWith(path: string, files: number): Promise<void> {
  const folder = await drive.folder(path);
  await fillFolder(product.environment.database, folder, files, { kind: 'file', idPrefix: `${folder.id}_` });
}

test('A small drive is shown whole, as JSON and as text', async () => {
  await drive.put('/a/deep/x.txt', 'x'.repeat(1_500));
  await drive.put('/b.txt', 'b');
  await drive.folder('/empty');
  const body = await tree();
  expect(body).toMatchObject({
    containerId: 'drive',
    path: '/',
    budget: 200,
    shown: 5,
    truncated: false,
    nextCursor: null,
  });
  expect(names(body.root)).toEqual([{ a: [{ deep: ['x.txt'] }] }, { empty: [] }, 'b.txt']);
  expect(child(body.root, 'b.txt')).toMatchObject({ kind: 'file', size: 1, contentType: 'text/plain' });
  const response = await drive.send('GET', '/fs/tree?format=text');
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(await response.text()).toBe('/\n  a/\n    deep/\n      x.txt  1.5 kB\n  empty/\n  b.txt  1 B\n');
});

test('The tree can be of an empty drive, a file, a folder, or another container', async () => {
  expect(await tree()).toMatchObject({ shown: 0, truncated: false, root: { children: [], childCount: 0 } });
  expect(await text()).toBe('/\n');
  await drive.put('/a/x.txt', 'x');
  expect(await text('path=/a/x.txt')).toBe('/a/x.txt  1 B\n');
  expect(await text('path=/a')).toBe('/a/\n  x.txt  1 B\n');
  const thread = await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} });
  const { id } = (await thread.json()) as { id: string };
  expect(await tree(`containerId=thread:${id}`)).toMatchObject({ containerId: `thread:${id}`, shown: 0 });
});

test('A level is complete before the next one begins', async () => {
  for (const folder of ['a', 'b', 'c']) for (const file of ['1', '2']) await drive.put(`/${folder}/${file}`);
  expect(names((await tree('budget=3')).root)).toEqual([{ a: [] }, { b: [] }, { c: [] }]);
  expect(names((await tree('budget=6')).root)).toEqual([{ a: ['1'] }, { b: ['1'] }, { c: ['1'] }]);
  expect(names((await tree('budget=7')).root)).toEqual([{ a: ['1', '2'] }, { b: ['1'] }, { c: ['1'] }]);
  expect(names((await tree('budget=9')).root)).toEqual([{ a: ['1', '2'] }, { b: ['1', '2'] }, { c: ['1', '2'] }]);
});

test('A folder of 10,000 items does not hide its neighbours, and each cut says how much is missing', async () => {
  await folderWith('/huge', 10_000);
  await folderWith('/large', 500);
  await folderWith('/small', 5);
  const body = await tree('budget=103');
  expect(body).toMatchObject({ shown: 103, truncated: true });
  const shown = (name: string) => child(body.root, name).children?.length;
  expect([shown('huge'), shown('large'), shown('small')]).toEqual([48, 47, 5]);
  expect(child(body.root, 'huge')).toMatchObject({ childCount: 10_000, missing: 9_952 });
  expect(child(body.root, 'small')).toMatchObject({ missing: 0, nextCursor: null });

  const lines = (await text('budget=103')).split('\n');
  expect(lines.filter((line) => line.includes('…'))).toEqual([
    expect.stringMatching(/^ {4}… 9952 more \(cursor=\S+\)$/),
    expect.stringMatching(/^ {4}… 453 more \(cursor=\S+\)$/),
  ]);
  expect(await text('budget=3')).toBe(
    '/\n  huge/  … 10000 not shown\n  large/  … 500 not shown\n  small/  … 5 not shown\n',
  );
});

test('a cursor goes on where a folder was cut, until nothing is missing', async () => {
  await folderWith('/many', 450);
  const first = await tree('budget=201');
  const seen = child(first.root, 'many').children?.map(({ name }) => name) ?? [];
  let cursor = child(first.root, 'many').nextCursor;
  for (let page = 0; cursor !== null && cursor !== undefined && page < 5; page++) {
    const next: TreeBody = await tree(`budget=200&cursor=${cursor}`);
    expect(next.path).toBe('/many');
    seen.push(...(next.root.children ?? []).map(({ name }) => name));
    expect(next.root.missing).toBe(450 - seen.length);
    cursor = next.nextCursor;
  }
  expect(cursor).toBeNull();
  expect(seen.toSorted()).toEqual(Array.from({ length: 450 }, (_, n) => `file ${n}`).toSorted());
});

test('The depth limits the number of levels', async () => {
  await drive.put('/a/b/c/d.txt');
  const body = await tree('depth=2');
  expect(names(body.root)).toEqual([{ a: [{ b: [] }] }]);
  expect(body.truncated).toBe(true);
  expect(await text('depth=1')).toBe('/\n  a/  … 1 not shown\n');
});

test('Misleading characters in names are escaped', async () => {
  await drive.put('/\u202Etxt.exe', 'x');
  await drive.put('/a\u2028b', 'x');
  expect(await text()).toBe('/\n  a\\u2028b  1 B\n  \\u202etxt.exe  1 B\n');
});

test('Items in the trash are not shown', async () => {
  const { id } = await drive.put('/a/x.txt');
  await drive.put('/a/y.txt');
  await drive.send('DELETE', `/items/${id}`);
  expect(names((await tree()).root)).toEqual([{ a: ['y.txt'] }]);
});

test.each([
  ['budget=0', 400],
  ['budget=5001', 400],
  ['budget=x', 400],
  ['depth=0', 400],
  ['format=xml', 400],
  ['cursor=nonsense', 400],
  ['path=/none', 404],
  ['path=/a/../b', 422],
  ['containerId=nonsense', 404],
  ['containerId=thread:thr_none', 404],
])('The tree for %s is %i', async (query, status) => {
  const response = await drive.send('GET', `/fs/tree?${query}`);
  expect([response.status, (await problemOf(response)).status]).toEqual([status, status]);
});

test('404 for another space’s cursor', async () => {
  await folderWith('/many', 300);
  const { root } = await tree();
  const cursor = child(root, 'many').nextCursor;
  const stranger = driveOf(product, await product.user());
  expect((await stranger.send('GET', `/fs/tree?cursor=${cursor}`)).status).toBe(404);
});

test('The cost depends on the budget, and not on the number of items', async () => {
  const { database, config } = product.environment;
  const costOf = async (items: number) => {
    const person = await product.user();
    const theirs = driveOf(product, person);
    for (let n = 0; n < 10; n++) {
      const folder = await theirs.folder(`/folder ${n}`);
      const options = { kind: 'file', idPrefix: `${folder.id}_` } as const;
      await fillFolder(database, folder, items / 10, options);
    }
    expect((await theirs.get<TreeBody>('/fs/tree?budget=500')).root.children).toHaveLength(10);
    return rowsTouched(config, async (single) => {
      const root = await driveModels(single).DriveItem.findOne({
        where: { spaceId: person.spaceId, parentId: person.spaceId },
        rejectOnEmpty: true,
      });
      await buildTree(single, root, { budget: 500, depth: 10 });
    });
  };
  const small = await costOf(1_000);
  expect(small).toBeGreaterThan(500);
  expect(await costOf(100_000)).toBeLessThan(small * 1.5);
});

test.each([
  [[5, 5, 5], 15, [5, 5, 5]],
  [[100, 1, 100], 21, [10, 1, 10]],
  [[100, 100, 100], 10, [4, 3, 3]],
  [[0, 3, 0], 2, [0, 2, 0]],
  [[], 5, []],
  [[1, 2, 3], 0, [0, 0, 0]],
])('Folders with %j items share a budget of %i as %j', (sizes, budget, shares) => {
  expect(shareBudget(sizes, budget)).toEqual(shares);
});
