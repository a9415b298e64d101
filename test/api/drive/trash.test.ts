import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  formOf,
  type ItemBody,
  type ItemPage,
  problemOf,
  type TestDrive,
} from '../../builders/drive.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

/** The trash: items that are hidden and restored, items that are removed for good, and the drive of a deleted space. */
let product: TestDrive;
let user: ChatUser;
let drive: ReturnType<typeof driveOf>;
beforeAll(async () => {
  product = await buildDrive(hurriedSweeper);
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  drive = driveOf(product, user);
});

const remove = (item: { id: string }, query = '') => drive.send('DELETE', `/items/${item.id}${query}`);
const trash = async () => (await drive.get<ItemPage>('/trash')).data.map(({ path }) => path);

test('A deleted folder is hidden with everything below it, and can be restored', async () => {
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

test('An item whose name is taken, or whose folder is gone, can be restored with another name or folder', async () => {
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

test('Removing an item for good removes its versions, everything below it, and their bytes', async () => {
  const kept = await drive.put('/kept.txt', 'kept');
  await drive.put('/a/b/c.txt', 'one');
  await drive.put('/a/b/c.txt', 'two', 'replace');
  const inTrash = await drive.put('/a/d.txt', 'three');
  await remove(inTrash);
  const folder = (await drive.get<ItemPage>('/items?path=/a')).data[0]?.parentId ?? '';
  expect((await remove({ id: folder }, '?permanent=true')).status).toBe(204);
  expect(await drive.names()).toEqual(['kept.txt']);
  expect(await trash()).toEqual([]);
  expect(await driveModels(product.environment.database).Drive.usedBytesOf(user.spaceId)).toBe(4);
  expect(await drive.content(kept.id)).toBe('kept');
  await expectNoOrphans(product, user.spaceId);
});

test('Emptying the trash removes only the items in it', async () => {
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

test('The sweeper purges an item of the trash when its time is over', async () => {
  const file = await drive.put('/old.txt', 'old');
  await remove(file);
  await driveModels(product.environment.database).DriveItem.update(
    { trashedAt: new Date(Date.now() - 31 * 86_400_000) },
    { where: { id: file.id } },
  );
  await waitFor(
    'the sweeper',
    async () =>
      (await driveModels(product.environment.database).DriveObject.count({ where: { spaceId: user.spaceId } })) === 0,
  );
  expect(await trash()).toEqual([]);
  await expectNoOrphans(product, user.spaceId);
});

test('Deleting a space removes its drive with all objects', async () => {
  await drive.put('/a/b.txt');
  const thread = await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} });
  const { id: threadId } = (await thread.json()) as { id: string };
  await drive.send('POST', `/api/spaces/${user.spaceId}/thread-files`, formOf({ threadId }, [{ bytes: 'x' }]));
  const upload = await drive.send('POST', '/uploads', { path: '/large', size: 100 });
  expect(upload.status).toBe(201);
  const response = await user.fetch(`/api/spaces/${user.spaceId}`, { method: 'DELETE' });
  expect(response.status).toBeLessThan(300);
  await waitFor(
    'the purge',
    async () =>
      (await driveModels(product.environment.database).DriveObject.count({ where: { spaceId: user.spaceId } })) === 0,
  );
  expect(await driveModels(product.environment.database).DriveItem.count({ where: { spaceId: user.spaceId } })).toBe(0);
  expect(await driveModels(product.environment.database).DriveUpload.count({ where: { spaceId: user.spaceId } })).toBe(
    0,
  );
  await expectNoOrphans(product, user.spaceId);
});
