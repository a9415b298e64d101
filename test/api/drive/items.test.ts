import { moveItem } from '../../../models/drive/changes.ts';
import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  type ItemBody,
  type ItemPage,
  type TestDrive,
} from '../../builders/drive.ts';
import { fillFolder } from '../../builders/driveRows.ts';
import { rowsTouched } from '../../support/rowsTouched.ts';

/** Moving and renaming items, and their versions. Trash and folders have test files of their own. */
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive();
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

const change = async (item: { id: string }, body: object, headers?: Record<string, string>) => {
  const response = await drive.send('PATCH', `/items/${item.id}`, body, headers);
  return { status: response.status, body: (await response.json()) as ItemBody & { code?: string } };
};
const remove = (item: { id: string }, query = '') => drive.send('DELETE', `/items/${item.id}${query}`);
const trash = async () => (await drive.get<ItemPage>('/trash')).data.map(({ path }) => path);

describe('moves', () => {
  test('An item moves to a name, a folder, both, or a path, with everything below it', async () => {
    const folder = await drive.folder('/from');
    const file = await drive.put('/from/deep/x.txt', 'text');
    const to = await drive.folder('/to');
    expect((await change(folder, { name: 'renamed' })).body.path).toBe('/renamed');
    expect((await drive.item(file.id)).path).toBe('/renamed/deep/x.txt');
    expect((await change(folder, { parentId: to.id, name: 'both' })).body.path).toBe('/to/both');
    expect((await change(folder, { path: '/new/place' })).body.path).toBe('/new/place');
    expect((await drive.item(file.id)).path).toBe('/new/place/deep/x.txt');
    expect(await drive.content(file.id)).toBe('text');
    expect(await drive.item(to.id)).toMatchObject({ childCount: 0 });
    expect(await drive.names()).toEqual(['new/', 'to/']);
  });

  test('A taken name is refused, numbered, or taken over from a file, which goes into the trash', async () => {
    const [a, b] = [await drive.put('/a.txt', 'a'), await drive.put('/b.txt', 'b')];
    expect(await change(a, { name: 'b.txt' })).toMatchObject({ status: 409, body: { code: 'NAME_TAKEN' } });
    expect((await change(a, { name: 'b.txt', onConflict: 'rename' })).body.name).toBe('b (2).txt');
    expect((await change(a, { name: 'b.txt', onConflict: 'replace' })).body.name).toBe('b.txt');
    expect(await drive.names()).toEqual(['b.txt']);
    expect(await trash()).toEqual(['/b.txt']);
    expect((await drive.item(b.id)).trashedAt).not.toBeNull();
    const folder = await drive.folder('/folder');
    expect(await change(folder, { name: 'b.txt', onConflict: 'replace' })).toMatchObject({ status: 409 });
    // Its own name, also in another case, is not a conflict.
    expect((await change(a, { name: 'b.txt' })).status).toBe(200);
    expect((await change(a, { name: 'B.txt' })).body.name).toBe('B.txt');
  });

  test('An item moves neither into itself nor too deep, and a root does not move', async () => {
    const a = await drive.folder('/a');
    const c = await drive.folder('/a/b/c');
    for (const body of [{ parentId: c.id }, { parentId: a.id }, { path: '/a/b/c/d' }]) {
      expect(await change(a, body)).toMatchObject({ status: 409, body: { code: 'MOVE_INTO_ITSELF' } });
    }
    const root = await drive.item(a.parentId ?? '');
    expect(await change(root, { name: 'x' })).toMatchObject({ status: 409, body: { code: 'IS_ROOT' } });
    expect((await remove(root)).status).toBe(409);
    const bottom = await drive.folder(`/${Array.from({ length: 99 }, (_, i) => i).join('/')}`);
    expect(await change(a, { parentId: bottom.id })).toMatchObject({ status: 422, body: { code: 'TOO_DEEP' } });
    const file = await drive.put('/file');
    expect(await change(c, { parentId: file.id })).toMatchObject({ status: 409, body: { code: 'NOT_A_FOLDER' } });
    expect(await change(c, { parentId: 'itm_none' })).toMatchObject({ status: 404 });
  });

  test.each([
    [{ onConflict: 'rename' }],
    [{ containerId: 'drive' }],
    [{ name: 'b', containerId: 'drive' }],
    [{ path: '/b', name: 'c' }],
  ])('422 for %j, which does not say where', async (body) => {
    expect(await change(await drive.folder('/a'), body)).toMatchObject({
      status: 422,
      body: { code: 'PATH_OR_PARENT' },
    });
    expect(await drive.names()).toEqual(['a/']);
  });

  test('With If-Match, an item moves only if its mover knows the content', async () => {
    const file = await drive.put('/a.txt', 'one');
    await drive.put('/a.txt', 'two', 'replace');
    expect(await change(file, { name: 'b.txt' }, { 'if-match': file.etag })).toMatchObject({ status: 412 });
    expect(await drive.names()).toEqual(['a.txt']);
  });

  test('Moving a folder of 100,000 items costs as much as moving an empty one', async () => {
    const { database, config } = product.environment;
    const [many, none] = [await drive.folder('/many'), await drive.folder('/none')];
    await fillFolder(database, many, 100_000, { kind: 'file', idPrefix: `${many.id}_` });
    const below = () =>
      driveModels(product.environment.database).DriveItem.findOne({ where: { id: `${many.id}_99999` }, raw: true });
    const before = await below();
    const target = await drive.folder('/target');
    const costOf = ({ id: itemId }: ItemBody) =>
      rowsTouched(config, (single) => {
        const parent = { folderId: target.id };
        return moveItem(single, { itemId, parent, spaceId: user.spaceId, userId: user.id, onConflict: 'error' });
      });
    const costOfEmpty = await costOf(none);
    expect(costOfEmpty).toBeGreaterThan(0);
    expect(await costOf(many)).toBeLessThan(costOfEmpty + 100);
    expect((await change(many, { path: '/3/deeper/many' })).status).toBe(200);
    expect(await below()).toEqual(before);
    expect((await drive.item(`${many.id}_99999`)).path).toBe('/3/deeper/many/file 99999');
    expect((await remove(many)).status).toBe(204);
    expect((await drive.send('GET', `/items/${many.id}_99999`)).status).toBe(404);
    expect((await drive.send('POST', `/items/${many.id}/restore`)).status).toBe(200);
    expect((await drive.item(`${many.id}_99999`)).path).toBe('/3/deeper/many/file 99999');
  });
});

test('Viewers can read and get 403 for changes, and strangers get 404', async () => {
  const file = await drive.put('/a/x.txt');
  const trashed = await drive.put('/a/y.txt');
  await remove(trashed);
  const [viewer, stranger] = [await product.user(), await product.user()];
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  const reads = ['', '/items', `/items/${file.id}`, `/items/${file.id}/content`, '/trash', '/fs/tree', '/search?q=x'];
  const writes: [string, string, object?][] = [
    ['POST', '/folders', { path: '/new' }],
    ['PATCH', `/items/${file.id}`, { name: 'z' }],
    ['DELETE', `/items/${file.id}`],
    ['DELETE', `/items/${file.id}?permanent=true`],
    ['POST', `/items/${trashed.id}/restore`],
    ['DELETE', '/trash'],
    ['POST', '/uploads', { path: '/large', size: 10 }],
  ];
  const asViewer = driveOf(product, { token: viewer.token, spaceId: user.spaceId });
  const asStranger = driveOf(product, { token: stranger.token, spaceId: user.spaceId });
  // Ids of another space are unknown in one's own.
  const elsewhere = driveOf(product, stranger);
  for (const path of reads) {
    expect([path, (await asViewer.send('GET', path)).status]).toEqual([path, 200]);
    expect([path, (await asStranger.send('GET', path)).status]).toEqual([path, 404]);
    if (path.includes('itm_')) expect((await elsewhere.send('GET', path)).status).toBe(404);
  }
  for (const [method, path, body] of writes) {
    expect([method, path, (await asViewer.send(method, path, body)).status]).toEqual([method, path, 403]);
    expect([method, path, (await asStranger.send(method, path, body)).status]).toEqual([method, path, 404]);
    if (path.includes('itm_')) expect((await elsewhere.send(method, path, body)).status).toBe(404);
  }
  // Nothing goes into the folder of another space either.
  const folder = await drive.get<ItemPage>('/items?path=/a');
  const parentId = folder.data[0]?.parentId;
  expect((await elsewhere.send('POST', '/folders', { parentId, name: 'x' })).status).toBe(404);
  const theirs = await elsewhere.put('/theirs.txt');
  expect((await elsewhere.send('PATCH', `/items/${theirs.id}`, { parentId })).status).toBe(404);
  expect(await drive.names()).toEqual(['a/']);
  expect(await drive.names('/a')).toEqual(['x.txt']);
});

test('Simultaneous uploads never share a name, and the counts are right', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_, i) => drive.upload({ path: '/d/same.txt' }, { bytes: `${i}` })),
  );
  expect(statuses.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)]);
  await Promise.all(Array.from({ length: 20 }, () => drive.put('/d/free.txt', 'x', 'rename')));
  const names = await drive.names('/d');
  expect(new Set(names).size).toBe(21);
  const folder = await drive.get<ItemPage>('/items?path=/d');
  expect(await drive.item(folder.data[0]?.parentId ?? '')).toMatchObject({ childCount: 21 });
  await expectNoOrphans(product, user.spaceId);
});

test('Earlier versions can be read and restored', async () => {
  const { id } = await drive.put('/v.txt', 'one');
  await drive.put('/v.txt', 'two', 'replace');
  await drive.put('/v.txt', 'three', 'replace');
  const versionOf = async (itemId: string, version: number) =>
    (await drive.send('GET', `/items/${itemId}/content?version=${version}`)).text();
  const list = await drive.get<{ data: { version: number; isCurrent: boolean; size: number }[] }>(
    `/items/${id}/versions`,
  );
  expect(list.data.map(({ version, isCurrent, size }) => [version, isCurrent, size])).toEqual([
    [3, true, 5],
    [2, false, 3],
    [1, false, 3],
  ]);
  expect(await versionOf(id, 1)).toBe('one');
  expect((await drive.send('GET', `/items/${id}/content?version=9`)).status).toBe(404);
  const restored = await drive.send('POST', `/items/${id}/versions/1/restore`);
  expect(await restored.json()).toMatchObject({ id, version: 4, size: 3 });
  expect(await drive.content(id)).toBe('one');
  expect(await versionOf(id, 3)).toBe('three');
  const stale = await drive.send('POST', `/items/${id}/versions/2/restore`, undefined, { 'if-match': '"other"' });
  expect(stale.status).toBe(412);
});
