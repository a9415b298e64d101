import type { operations } from '../../../api/generated/types.gen.ts';
import { newId } from '../../../base/ids.ts';
import { makeFolder } from '../../../models/drive/changes.ts';
import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { driveOf, type ItemPage, problemOf } from '../../builders/drive.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { rowsTouched } from '../../support/rowsTouched.ts';

/** Making, listing and searching folders. */
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

describe('folders', () => {
  test('A folder is made by a path, with its parents, or by a name in another folder', async () => {
    const deep = await drive.folder('/a/b/c');
    expect(deep).toMatchObject({ kind: 'folder', path: '/a/b/c', name: 'c', size: null, version: 0, childCount: 0 });
    const response = await drive.send('POST', '/folders', { parentId: deep.id, name: 'd' });
    expect([response.status, await response.json()]).toMatchObject([201, { path: '/a/b/c/d', parentId: deep.id }]);
    expect(await drive.item(deep.id)).toMatchObject({ childCount: 1 });
    expect(await drive.names('/a')).toEqual(['b/']);
  });

  test('Each folder of a long path costs as much as one of a short path', async () => {
    const { database, config } = product.environment;
    const { id: userId, spaceId } = user;
    const costOf = (root: string, levels: number) =>
      rowsTouched(config, (single) => {
        const names = [root, ...Array.from({ length: levels }, (_, i) => String(i))];
        const container = { spaceId, containerId: 'drive', userId };
        return makeFolder(single, {
          ...container,
          id: newId('driveItem'),
          parent: { names },
          name: 'x',
          onConflict: 'error',
        });
      });
    const few = await costOf('few', 8);
    expect(await costOf('many', 80)).toBeLessThan(few * 11);
    const { DriveItem } = driveModels(database);
    const root = await drive.item((await drive.folder('/few (2)')).parentId ?? '');
    const many = await DriveItem.childOf(root.id, 'many');
    expect([many?.height, (await DriveItem.find(root.id))?.height]).toEqual([81, 82]);
  });

  test('409 for a taken name, or the next free name if asked for', async () => {
    await drive.folder('/a');
    const refused = await drive.send('POST', '/folders', { path: '/a' });
    expect([refused.status, (await problemOf(refused)).code]).toEqual([409, 'NAME_TAKEN']);
    const renamed = await drive.send('POST', '/folders', { path: '/a', onConflict: 'rename' });
    expect(await renamed.json()).toMatchObject({ path: '/a (2)' });
    await drive.put('/file');
    const below = await drive.send('POST', '/folders', { path: '/file/x' });
    expect([below.status, (await problemOf(below)).code]).toEqual([409, 'NOT_A_FOLDER']);
  });

  test('The same Idempotency-Key makes one folder', async () => {
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
  ])('The request %j is %i', async (body, status) => {
    const response = await drive.send('POST', '/folders', body);
    expect([response.status, (await problemOf(response)).status]).toEqual([status, status]);
    expect(await drive.names()).toEqual([]);
  });
});

test('A list has folders first, then files, by name, in pages', async () => {
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

describe('search', () => {
  type Found = operations['searchDrive']['responses'][200]['content']['application/json'];
  const search = async (query: string) =>
    (await drive.get<Found>(`/search?${query}`)).data.map(({ path, matched }) => `${path} ${matched.join('+')}`);

  test('Search finds the beginnings of words in names and small texts, without case and accents', async () => {
    await drive.put('/Quarterly Réport.txt', 'nothing of note');
    await drive.put('/notes/meeting.md', 'We talked about the quarterly numbers.');
    await drive.put('/camelCaseName.ts', 'export {}');
    await drive.put('/binary.bin', Uint8Array.from([0, 1, ...Buffer.from('quarterly')]));
    expect((await search('q=quarterly')).sort()).toEqual(['/Quarterly Réport.txt name', '/notes/meeting.md text']);
    expect(await search('q=QUART rep')).toEqual(['/Quarterly Réport.txt name']);
    expect(await search('q=quarterly&in=text')).toEqual(['/notes/meeting.md text']);
    expect(await search('q=case')).toEqual(['/camelCaseName.ts name']);
    expect(await search('q=absent')).toEqual([]);
    expect(await search('q=%25')).toEqual([]);
  });

  test('Search finds a changed item by its present words only', async () => {
    const { id } = await drive.put('/old.txt', 'apples');
    await drive.put('/old.txt', 'pears', 'replace');
    expect(await search('q=apples')).toEqual([]);
    expect(await search('q=pears')).toEqual(['/old.txt text']);
    await drive.send('PATCH', `/items/${id}`, { name: 'new.txt' });
    expect(await search('q=old')).toEqual([]);
    expect(await search('q=new')).toEqual(['/new.txt name']);
    await drive.send('DELETE', `/items/${id}`);
    expect(await search('q=new')).toEqual([]);
  });

  test('Search results come in pages, each item once, and never from another space', async () => {
    for (let n = 0; n < 7; n++) await drive.put(`/page ${n}.txt`, 'page');
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Found = await drive.get(`/search?q=page&limit=3${cursor && `&cursor=${cursor}`}`);
      seen.push(...page.data.map(({ name }) => name));
      cursor = page.nextCursor;
    }
    expect(seen.toSorted()).toEqual(Array.from({ length: 7 }, (_, n) => `page ${n}.txt`));
    const stranger = driveOf(product, await product.user());
    expect(await stranger.get('/search?q=page')).toEqual({ data: [], nextCursor: null });
    expect((await drive.send('GET', '/search?q=page&cursor=nonsense')).status).toBe(400);
    expect((await drive.send('GET', '/search?q=')).status).toBe(400);
  });
});
