import { Drive } from '../../models/drive/drive.ts';
import { DriveItem } from '../../models/drive/driveItem.ts';
import { DriveObject } from '../../models/drive/driveObject.ts';
import { DriveUpload } from '../../models/drive/driveUpload.ts';
import type { ChatUser } from '../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  formOf,
  type ItemBody,
  type ItemPage,
  problemOf,
  type TestDrive,
} from '../builders/drive.ts';
import { fillFolder } from '../builders/driveRows.ts';
import { waitFor } from '../support/waitFor.ts';

/** Folders and items: made, listed, moved, put into the trash and back, removed for good. */
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive();
}, 60_000);
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

describe('folders', () => {
  test('by a path, with those above it, or by a name in another one', async () => {
    const deep = await drive.folder('/a/b/c');
    expect(deep).toMatchObject({ kind: 'folder', path: '/a/b/c', name: 'c', size: null, version: 0, childCount: 0 });
    const response = await drive.send('POST', '/folders', { parentId: deep.id, name: 'd' });
    expect([response.status, await response.json()]).toMatchObject([201, { path: '/a/b/c/d', parentId: deep.id }]);
    expect(await drive.item(deep.id)).toMatchObject({ childCount: 1 });
    expect(await drive.names('/a')).toEqual(['b/']);
  });

  test('409 for a name that is taken, or the next free one', async () => {
    await drive.folder('/a');
    const refused = await drive.send('POST', '/folders', { path: '/a' });
    expect([refused.status, (await problemOf(refused)).code]).toEqual([409, 'NAME_TAKEN']);
    const renamed = await drive.send('POST', '/folders', { path: '/a', onConflict: 'rename' });
    expect(await renamed.json()).toMatchObject({ path: '/a (2)' });
    await drive.put('/file');
    const below = await drive.send('POST', '/folders', { path: '/file/x' });
    expect([below.status, (await problemOf(below)).code]).toEqual([409, 'NOT_A_FOLDER']);
  });

  test('once per Idempotency-Key', async () => {
    const make = (path: string) => drive.send('POST', '/folders', { path }, { 'idempotency-key': 'one' });
    const first = await (await make('/a')).json();
    expect([(await make('/a')).status, await (await make('/a')).json()]).toEqual([201, first]);
    expect((await make('/b')).status).toBe(422);
  });

  test.each([
    [{}, 422],
    [{ path: '/a', name: 'b' }, 422],
    [{ name: 'b' }, 422],
    [{ path: '/' }, 422],
    [{ parentId: 'itm_none', name: 'b', containerId: 'drive' }, 422],
    [{ path: '/a', extra: 1 }, 400],
    [{ path: 1 }, 400],
    [{ parentId: 'itm_none', name: 'b' }, 404],
    [{ path: '/a', containerId: 'nonsense' }, 404],
    [{ path: '/a', containerId: 'thread:thr_none' }, 404],
    [{ path: '/a', containerId: 'app:itm_none' }, 404],
    [{ path: `/${'x/'.repeat(101)}` }, 422],
  ])('%j is %i', async (body, status) => {
    const response = await drive.send('POST', '/folders', body);
    expect([response.status, (await problemOf(response)).status]).toEqual([status, status]);
    expect(await drive.names()).toEqual([]);
  });
});

test('lists: folders first, then files, by name, in pages', async () => {
  for (const name of ['b', 'a', 'é', 'Z']) await drive.folder(`/${name}`);
  for (const name of ['2', '10', 'a.txt', 'A.txt']) await drive.put(`/${name}`);
  const order = ['Z/', 'a/', 'b/', 'é/', '10', '2', 'A.txt', 'a.txt'];
  expect(await drive.names()).toEqual(order);
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: ItemPage = await drive.get(`/items?limit=3${cursor && `&cursor=${cursor}`}`);
    expect(page.data.length).toBeLessThanOrEqual(3);
    seen.push(...page.data.map(({ name, kind }) => (kind === 'folder' ? `${name}/` : name)));
    cursor = page.nextCursor;
  }
  expect(seen).toEqual(order);
  for (const cursor of ['x', 'AAAA', Buffer.from('2 x').toString('base64url')]) {
    expect((await drive.send('GET', `/items?cursor=${cursor}`)).status).toBe(400);
  }
});

describe('moves', () => {
  test('a name, a folder, both, or a path; what is below comes along', async () => {
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

  test('a name that is taken: refused, numbered, or a file in its place, which goes into the trash', async () => {
    const [a, b] = [await drive.put('/a.txt', 'a'), await drive.put('/b.txt', 'b')];
    expect(await change(a, { name: 'b.txt' })).toMatchObject({ status: 409, body: { code: 'NAME_TAKEN' } });
    expect((await change(a, { name: 'b.txt', onConflict: 'rename' })).body.name).toBe('b (2).txt');
    expect((await change(a, { name: 'b.txt', onConflict: 'replace' })).body.name).toBe('b.txt');
    expect(await drive.names()).toEqual(['b.txt']);
    expect(await trash()).toEqual(['/b.txt']);
    expect((await drive.item(b.id)).trashedAt).not.toBeNull();
    const folder = await drive.folder('/folder');
    expect(await change(folder, { name: 'b.txt', onConflict: 'replace' })).toMatchObject({ status: 409 });
    // Its own name, or only another case of it, is no conflict.
    expect((await change(a, { name: 'b.txt' })).status).toBe(200);
    expect((await change(a, { name: 'B.txt' })).body.name).toBe('B.txt');
  });

  test('never into itself, nor of a root, nor deeper than a tree may be', async () => {
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

  test('If-Match: only the content that its mover knows', async () => {
    const file = await drive.put('/a.txt', 'one');
    await drive.put('/a.txt', 'two', 'replace');
    expect(await change(file, { name: 'b.txt' }, { 'if-match': file.etag })).toMatchObject({ status: 412 });
    expect(await drive.names()).toEqual(['a.txt']);
  });

  test('a folder of 100,000 items costs what an empty one does', async () => {
    const { database } = product.environment;
    const [many, none] = [await drive.folder('/many'), await drive.folder('/none')];
    await fillFolder(database, many, 100_000, { kind: 'file', idPrefix: `${many.id}_` });
    const below = () => DriveItem.findOne({ where: { id: `${many.id}_99999` }, raw: true });
    const before = await below();
    const fastest = async (folder: ItemBody) => {
      const times: number[] = [];
      for (const path of ['/1', '/2/deeper', '/3/deeper']) {
        const started = performance.now();
        expect((await change(folder, { path: `${path}/${folder.name}` })).status).toBe(200);
        times.push(performance.now() - started);
      }
      return Math.min(...times);
    };
    const emptyMs = await fastest(none);
    // To rewrite what is below takes more than a second.
    expect(await fastest(many)).toBeLessThan(emptyMs + 150);
    expect(await below()).toEqual(before);
    expect((await drive.item(`${many.id}_99999`)).path).toBe('/3/deeper/many/file 99999');
    expect((await remove(many)).status).toBe(204);
    expect((await drive.send('GET', `/items/${many.id}_99999`)).status).toBe(404);
    expect((await drive.send('POST', `/items/${many.id}/restore`)).status).toBe(200);
    expect((await drive.item(`${many.id}_99999`)).path).toBe('/3/deeper/many/file 99999');
  });
});

describe('trash', () => {
  test('out of sight with all that is below it, and back', async () => {
    const folder = await drive.folder('/a/b');
    const file = await drive.put('/a/b/c.txt', 'text');
    expect((await remove(folder)).status).toBe(204);
    expect(await drive.names('/a')).toEqual([]);
    expect((await drive.send('GET', `/items/${file.id}`)).status).toBe(404);
    expect((await remove(folder)).status).toBe(404);
    expect(await trash()).toEqual(['/a/b']);
    const back = await drive.send('POST', `/items/${folder.id}/restore`);
    expect([back.status, await back.json()]).toMatchObject([200, { path: '/a/b', trashedAt: null }]);
    expect(await drive.content(file.id)).toBe('text');
    expect(await trash()).toEqual([]);
    const again = await drive.send('POST', `/items/${folder.id}/restore`);
    expect([again.status, (await problemOf(again)).code]).toEqual([409, 'NOT_IN_TRASH']);
  });

  test('back where the name is taken, or the folder gone: another name, another folder', async () => {
    const file = await drive.put('/a/x.txt', 'first');
    await remove(file);
    const second = await drive.put('/a/x.txt', 'second');
    const restore = async (id: string, body: object) => {
      const response = await drive.send('POST', `/items/${id}/restore`, body);
      return { status: response.status, body: (await response.json()) as ItemBody & { code?: string } };
    };
    expect(await restore(file.id, {})).toMatchObject({ status: 409, body: { code: 'NAME_TAKEN' } });
    expect(await restore(file.id, { onConflict: 'rename' })).toMatchObject({ body: { path: '/a/x (2).txt' } });
    await remove(second);
    const [folder] = (await drive.get<ItemPage>('/items')).data;
    await remove(folder as ItemBody);
    expect(await restore(second.id, {})).toMatchObject({ status: 409, body: { code: 'FOLDER_GONE' } });
    const other = await drive.folder('/other');
    expect(await restore(second.id, { parentId: other.id, name: 'y.txt' })).toMatchObject({
      body: { path: '/other/y.txt' },
    });
  });

  test('removed for good: the item, its versions, all below it, and their bytes', async () => {
    const kept = await drive.put('/kept.txt', 'kept');
    await drive.put('/a/b/c.txt', 'one');
    await drive.put('/a/b/c.txt', 'two', 'replace');
    const inTrash = await drive.put('/a/d.txt', 'three');
    await remove(inTrash);
    const folder = (await drive.get<ItemPage>('/items?path=/a')).data[0]?.parentId ?? '';
    expect((await remove({ id: folder }, '?permanent=true')).status).toBe(204);
    expect(await drive.names()).toEqual(['kept.txt']);
    expect(await trash()).toEqual([]);
    expect(await Drive.usedBytesOf(user.spaceId)).toBe(4);
    expect(await drive.content(kept.id)).toBe('kept');
    await expectNoOrphans(product, user.spaceId);
  });

  test('emptied: what was in it then', async () => {
    const [a, b] = [await drive.put('/a.txt'), await drive.put('/b.txt')];
    await drive.put('/c.txt');
    await remove(a);
    await remove(b);
    expect((await drive.send('DELETE', '/trash')).status).toBe(204);
    expect(await trash()).toEqual([]);
    expect(await drive.names()).toEqual(['c.txt']);
    for (const { id } of [a, b]) {
      expect((await drive.send('POST', `/items/${id}/restore`)).status).toBe(404);
    }
    await expectNoOrphans(product, user.spaceId);
  });

  test('purged by the sweeper when its time is over', async () => {
    const file = await drive.put('/old.txt', 'old');
    await remove(file);
    await DriveItem.update({ trashedAt: new Date(Date.now() - 31 * 86_400_000) }, { where: { id: file.id } });
    await waitFor('the sweeper', async () => (await DriveObject.count({ where: { spaceId: user.spaceId } })) === 0);
    expect(await trash()).toEqual([]);
    await expectNoOrphans(product, user.spaceId);
  });
});

test('a deleted space takes its drive with it, objects and all', async () => {
  await drive.put('/a/b.txt');
  const thread = await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} });
  const { id: threadId } = (await thread.json()) as { id: string };
  await drive.send('POST', `/api/spaces/${user.spaceId}/thread-files`, formOf({ threadId }, [{ bytes: 'x' }]));
  const upload = await drive.send('POST', '/uploads', { path: '/large', size: 100 });
  expect(upload.status).toBe(201);
  const response = await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' });
  expect(response.status).toBeLessThan(300);
  await waitFor('the purge', async () => (await DriveObject.count({ where: { spaceId: user.spaceId } })) === 0);
  expect(await DriveItem.count({ where: { spaceId: user.spaceId } })).toBe(0);
  expect(await DriveUpload.count({ where: { spaceId: user.spaceId } })).toBe(0);
  await expectNoOrphans(product, user.spaceId);
});

test('who may: viewers look, editors change, strangers see nothing', async () => {
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
  // Another space's ids in one's own space are as unknown as any.
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
  // Nor does anything go into another space's folder.
  const folder = await drive.get<ItemPage>('/items?path=/a');
  const parentId = folder.data[0]?.parentId;
  expect((await elsewhere.send('POST', '/folders', { parentId, name: 'x' })).status).toBe(404);
  const theirs = await elsewhere.put('/theirs.txt');
  expect((await elsewhere.send('PATCH', `/items/${theirs.id}`, { parentId })).status).toBe(404);
  expect(await drive.names()).toEqual(['a/']);
  expect(await drive.names('/a')).toEqual(['x.txt']);
});

test('many at once: no name twice, no count that is off', async () => {
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
