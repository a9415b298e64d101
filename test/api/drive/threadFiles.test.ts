import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  formOf,
  problemOf,
  type SentFile,
  type TestDrive,
  type UploadBody,
} from '../../builders/drive.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Files of a thread, which are for its owner alone. */
let product: TestDrive;
let user: ChatUser;
let threadId: string;
beforeAll(async () => {
  product = await buildDrive();
});
afterAll(() => product.close());
beforeEach(async () => {
  user = await product.user();
  threadId = await threadOf(user);
});

async function threadOf(person: ChatUser): Promise<string> {
  const response = await person.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} });
  return ((await response.json()) as { id: string }).id;
}

/** The drive of the user's space, for another person. */
const asMember = (person: Pick<ChatUser, 'token'>) => driveOf(product, { token: person.token, spaceId: user.spaceId });
const files = () => `/api/spaces/${user.spaceId}/thread-files`;
const upload = (fields: Record<string, string>, file: SentFile, person: Pick<ChatUser, 'token'> = user) =>
  asMember(person).send('POST', files(), formOf(fields, [file]));
const link = (query: string, person: Pick<ChatUser, 'token'> = user) =>
  asMember(person).send('GET', `${files()}/url?${query}`);

test('A file is uploaded to a thread, and read by a link', async () => {
  const response = await upload({ threadId, path: '/in/' }, { bytes: 'hello', name: 'a.txt' });
  expect(response.status).toBe(201);
  const file = (await response.json()) as UploadBody;
  expect(file).toMatchObject({
    containerId: `thread:${threadId}`,
    path: '/in/a.txt',
    size: 5,
    contentType: 'text/plain',
  });
  const answer = await link(`threadId=${threadId}&path=/in/a.txt`);
  expect(answer.status).toBe(200);
  const { url } = (await answer.json()) as { url: string };
  const content = await fetch(url);
  expect([content.status, await content.text()]).toEqual([200, 'hello']);
  expect(content.headers.get('content-disposition')).toMatch(/^inline; filename="a.txt"/);
  const saved = (await (await link(`threadId=${threadId}&path=/in/a.txt&download=true`)).json()) as { url: string };
  expect((await fetch(saved.url)).headers.get('content-disposition')).toMatch(/^attachment; /);
  // The file is not in the drive.
  expect(await driveOf(product, user).names()).toEqual([]);
  expect(await asMember(user).content(file.id)).toBe('hello');
});

test('Only the owner can use the files of a thread: 403 for a colleague, 404 for a stranger, 401 without a token', async () => {
  const file = (await (await upload({ threadId }, { bytes: 'x', name: 'a.txt' })).json()) as UploadBody;
  const [colleague, stranger] = [await product.user(), await product.user()];
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
  for (const [person, status] of [
    [colleague, 403],
    [stranger, 404],
    [{ token: 'nonsense' }, 401],
  ] as const) {
    expect((await link(`threadId=${threadId}&path=/a.txt`, person)).status).toBe(status);
    expect((await upload({ threadId }, { bytes: 'x', name: 'b.txt' }, person)).status).toBe(status);
    const theirs = asMember(person);
    for (const path of [`/items?containerId=thread:${threadId}`, `/items/${file.id}`, `/items/${file.id}/content`]) {
      expect([path, (await theirs.send('GET', path)).status]).toEqual([path, status]);
    }
    for (const path of [`/fs/tree?containerId=thread:${threadId}`, `/search?q=a&containerId=thread:${threadId}`]) {
      expect([path, (await theirs.send('GET', path)).status]).toEqual([path, status]);
    }
    expect((await theirs.send('PATCH', `/items/${file.id}`, { path: '/x', containerId: 'drive' })).status).toBe(status);
    expect((await theirs.send('DELETE', `/items/${file.id}`)).status).toBe(status);
  }
  // A colleague cannot put a file into the thread either.
  const own = await asMember(colleague).put('/own.txt');
  const moved = await asMember(colleague).send('PATCH', `/items/${own.id}`, {
    path: '/own.txt',
    containerId: `thread:${threadId}`,
  });
  expect(moved.status).toBe(403);
});

test('A viewer can have files in threads of their own', async () => {
  const viewer = await product.user();
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  const theirs = await threadOf(viewer);
  expect((await upload({ threadId: theirs }, { bytes: 'x', name: 'a.txt' }, viewer)).status).toBe(201);
  expect((await link(`threadId=${theirs}&path=a.txt`, viewer)).status).toBe(200);
});

test('404 for the files of a thread of another space', async () => {
  const elsewhere = await product.user();
  const response = await elsewhere.fetch(`/api/spaces/${elsewhere.spaceId}/threads`, { method: 'POST', body: {} });
  const { id } = (await response.json()) as { id: string };
  await product.identity.members.add(user.spaceId, elsewhere.email, 'editor');
  expect((await upload({ threadId: id }, { bytes: 'x' }, elsewhere)).status).toBe(404);
  expect((await link(`threadId=${id}&path=/a`, elsewhere)).status).toBe(404);
});

test.each([
  ['', 400],
  ['path=/a', 400],
  ['threadId=thr_none&path=/a', 404],
  ['threadId=THREAD&path=/none', 404],
  ['threadId=THREAD&path=/../a', 422],
  ['threadId=THREAD&path=/folder', 409],
  ['threadId=THREAD&path=/folder/a.txt&expiresIn=86401', 400],
])('a link for %j is %i', async (query, status) => {
  await upload({ threadId, path: '/folder/' }, { bytes: 'x', name: 'a.txt' });
  const response = await link(query.replace('THREAD', threadId));
  expect([response.status, (await problemOf(response)).status]).toEqual([status, status]);
});

test('An upload needs the id of an existing thread', async () => {
  expect((await upload({}, { bytes: 'x' })).status).toBe(400);
  expect((await upload({ threadId: 'thr_none' }, { bytes: 'x' })).status).toBe(404);
  await expectNoOrphans(product, user.spaceId);
});

test('A deleted thread takes its files along, and a late upload to it gets 404', async () => {
  await upload({ threadId }, { bytes: 'x', name: 'a.txt' });
  const drive = driveOf(product, user);
  const late = await drive.send('POST', '/uploads', { path: '/late', size: 3, containerId: `thread:${threadId}` });
  const { id, parts } = (await late.json()) as { id: string; parts: { url: string }[] };
  await fetch(parts[0]?.url ?? '', { method: 'PUT', body: 'abc' });
  await user.fetch(`/api/threads/${threadId}`, { method: 'DELETE' });
  expect((await link(`threadId=${threadId}&path=/a.txt`)).status).toBe(404);
  expect((await drive.send('POST', `/uploads/${id}/complete`)).status).toBe(404);
  await waitFor(
    'the purge',
    async () =>
      (await driveModels(product.environment.database).DriveObject.count({ where: { spaceId: user.spaceId } })) === 0,
  );
  expect(await driveModels(product.environment.database).DriveUpload.count({ where: { id } })).toBe(0);
  await expectNoOrphans(product, user.spaceId);
});
