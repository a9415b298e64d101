import { newId } from '../../../base/ids.ts';
import { changeAttributes, makeFolder } from '../../../models/drive/changes.ts';
import { changesSince, type DriveChanges } from '../../../models/drive/feed.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { purgeMarked } from '../../../models/drive/purgeItems.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildDrive, driveOf, type ItemBody, type ItemPage, problemOf, type TestDrive } from '../../builders/drive.ts';

/** The feed of a drive's changes, which the computers of its space follow. */
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

const since = (revision: number) => changesSince(product.environment.database, user.spaceId, revision);

/** What the feed tells of the changes that this makes: the path of each item, or `-` and its name if it is gone. */
async function toldOf(change: () => Promise<unknown>): Promise<string[]> {
  const { revision } = await since(0);
  await change();
  return pathsIn(await since(revision));
}

const pathsIn = ({ placed }: DriveChanges) =>
  placed.map(({ item, place }) => (place.isLive ? place.path : `-${item.name}`)).toSorted();

async function send(method: string, path: string, body?: object): Promise<Response> {
  const response = await drive.send(method, path, body);
  if (response.ok) return response;
  throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
}

async function symlink(name: string, target: string): Promise<ItemBody> {
  const { database } = product.environment;
  const where = { spaceId: user.spaceId, userId: user.id, containerId: 'drive' };
  const fields = {
    id: newId('driveItem'),
    parent: { names: [] },
    name,
    onConflict: 'error',
    linkTarget: target,
  } as const;
  const { item } = await makeFolder(database, { ...where, ...fields });
  return drive.item(item.id);
}

test('Each change of the tree is in the feed, with the items as they are then', async () => {
  expect(await toldOf(() => drive.put('/a/b/first.txt', 'one'))).toEqual(['/', '/a', '/a/b', '/a/b/first.txt']);
  // The folder is known now, so that this goes by the short way.
  expect(await toldOf(() => drive.put('/a/b/second.txt', 'two'))).toEqual(['/a/b/second.txt']);
  const together = () => Promise.all(['x', 'y', 'z'].map((name) => drive.put(`/a/b/${name}`, name)));
  expect(await toldOf(together)).toEqual(['/a/b/x', '/a/b/y', '/a/b/z']);
  const file = await drive.put('/a/b/third.txt', 'three');
  expect(await toldOf(() => drive.put('/a/b/third.txt', 'four', 'replace'))).toEqual(['/a/b/third.txt']);
  expect(await toldOf(() => send('POST', `/items/${file.id}/versions/1/restore`))).toEqual(['/a/b/third.txt']);
  expect(await toldOf(() => drive.folder('/c'))).toEqual(['/c']);
  expect(await toldOf(() => symlink('link', '../else'))).toEqual(['/link']);
  expect(await toldOf(() => send('PATCH', `/items/${file.id}`, { path: '/d/moved.txt' }))).toEqual([
    '/d',
    '/d/moved.txt',
  ]);
  const other = await drive.put('/d/other.txt', 'five');
  const replace = { name: 'moved.txt', onConflict: 'replace' };
  expect(await toldOf(() => send('PATCH', `/items/${other.id}`, replace))).toEqual(['-moved.txt', '/d/moved.txt']);
  expect(await toldOf(() => send('DELETE', `/items/${other.id}`))).toEqual(['-moved.txt']);
  expect(await toldOf(() => send('POST', `/items/${other.id}/restore`))).toEqual(['/d/moved.txt']);
  const attributes = { itemId: other.id, spaceId: user.spaceId, userId: user.id, says: { isExecutable: true } };
  expect(await toldOf(() => changeAttributes(product.environment.database, attributes))).toEqual(['/d/moved.txt']);
  expect(await drive.item(other.id)).toMatchObject({ executable: true });
});

test('A folder that moves, or goes, is told alone, and its content is found live or not by its place', async () => {
  await drive.put('/from/deep/file.txt');
  const [folder] = (await drive.get<ItemPage>('/items')).data as [ItemBody];
  const { revision } = await since(0);
  expect(await toldOf(() => send('DELETE', `/items/${folder.id}`))).toEqual(['-from']);
  expect(pathsIn(await since(0)).filter((path) => !path.startsWith('-'))).toEqual(['/']);
  expect((await since(0)).revision).toBe(revision + 1);
});

test('Revisions of concurrent changes have no gap, and a reader that follows them misses none', async () => {
  const seen = new Set<string>();
  let at = 0;
  const follow = async () => {
    const { revision, placed } = await since(at);
    at = revision;
    for (const { place } of placed) seen.add(place.path);
  };
  const names = Array.from({ length: 40 }, (_, n) => `/many/${n % 4}/${n}.txt`);
  let isOver = false;
  const following = (async () => {
    while (!isOver) await follow();
  })();
  await Promise.all(names.map((name) => drive.put(name)));
  isOver = true;
  await following;
  await follow();
  expect(names.filter((name) => !seen.has(name))).toEqual([]);
});

test('A reader from before a purge is told to forget what it knows', async () => {
  const file = await drive.put('/gone.txt');
  const { revision: before } = await since(0);
  await send('DELETE', `/items/${file.id}`);
  const { revision: trashed } = await since(0);
  await send('DELETE', `/items/${file.id}?permanent=true`);
  await purgeMarked(product.environment.database, { spaceId: user.spaceId }, () => undefined);
  const { DriveItem } = driveModels(product.environment.database);
  expect(await DriveItem.count({ where: { id: file.id } })).toBe(0);
  expect(await since(before)).toMatchObject({ reset: true, placed: [] });
  expect(await since(trashed)).toMatchObject({ reset: false, placed: [] });
  expect(await since(trashed + 1_000)).toMatchObject({ reset: true });
});

test('A symlink is shown, moved, removed and found like a file, but has no content', async () => {
  const link = await symlink('way', '/home/user/elsewhere');
  expect(link).toMatchObject({ kind: 'symlink', target: '/home/user/elsewhere', size: null, version: 0, path: '/way' });
  const content = await drive.send('GET', `/items/${link.id}/content`);
  expect([content.status, (await problemOf(content)).code]).toEqual([409, 'NOT_A_FILE']);
  const url = await drive.send('GET', `/items/${link.id}/url`);
  expect([url.status, (await problemOf(url)).code]).toEqual([409, 'NOT_A_FILE']);
  const upload = await drive.upload({ path: '/way', onConflict: 'replace' }, { bytes: 'x' });
  expect([upload.status, (await problemOf(upload)).code]).toEqual([409, 'NAME_TAKEN']);
  const below = await drive.upload({ path: '/way/below.txt' }, { bytes: 'x' });
  expect([below.status, (await problemOf(below)).code]).toEqual([409, 'NOT_A_FOLDER']);
  expect(await drive.names()).toEqual(['way']);
  expect(await (await drive.send('GET', '/fs/tree?format=text')).text()).toContain('way');
  const found = await drive.get<{ data: ItemBody[] }>('/search?q=way');
  expect(found.data.map(({ id }) => id)).toEqual([link.id]);
  await send('PATCH', `/items/${link.id}`, { name: 'road' });
  await send('DELETE', `/items/${link.id}?permanent=true`);
  await purgeMarked(product.environment.database, { spaceId: user.spaceId }, () => undefined);
  expect(await drive.names()).toEqual([]);
});
