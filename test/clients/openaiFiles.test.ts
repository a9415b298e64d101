import OpenAI, { NotFoundError, PermissionDeniedError, toFile } from 'openai';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, requestsWith, type TestProduct } from '../builders/product.ts';

/** `client.files` of OpenAI's own client, on the drive. */
let product: TestProduct;
let user: ChatUser;
let client: OpenAI;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
  client = clientOf(user);
});
afterAll(() => product.close());

const clientOf = ({ token }: ChatUser) => new OpenAI({ apiKey: token, baseURL: `${product.url}/v1`, maxRetries: 0 });
const textFile = (name: string, text: string) => toFile(Buffer.from(text), name);

test('A file is uploaded, listed, read and deleted, and is in the drive meanwhile', async () => {
  const file = await client.files.create({ file: await textFile('notes.txt', 'Buy milk'), purpose: 'user_data' });
  expect(file).toMatchObject({ object: 'file', bytes: 8, filename: 'notes.txt', purpose: 'user_data' });
  expect(await client.files.retrieve(file.id)).toEqual(file);
  expect(await (await client.files.content(file.id)).text()).toBe('Buy milk');
  const inDrive = await user.get<{ data: { id: string }[] }>(
    `/api/spaces/${user.spaceId}/drive/items?path=/openai/user_data`,
  );
  expect(inDrive.data.map(({ id }) => id)).toEqual([file.id]);
  expect(await client.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true });
  await expect(client.files.retrieve(file.id)).rejects.toBeInstanceOf(NotFoundError);
});

test('Files are listed the newest first, page by page and by purpose', async () => {
  const made: string[] = [];
  for (const n of [1, 2, 3]) {
    made.unshift((await client.files.create({ file: await textFile('same.txt', `${n}`), purpose: 'assistants' })).id);
  }
  const other = await client.files.create({ file: await textFile('same.txt', 'x'), purpose: 'vision' });
  const listed: string[] = [];
  for await (const { id } of client.files.list({ limit: 2 })) listed.push(id);
  expect(listed).toEqual([other.id, ...made]);
  const page = await client.files.list({ purpose: 'assistants' });
  expect(page.data.map(({ id }) => id)).toEqual(made);
  expect(page.data.map(({ filename }) => filename)).toEqual(['same (3).txt', 'same (2).txt', 'same.txt']);
  expect((await client.files.list({ purpose: 'batch' })).data).toEqual([]);
});

test('A file is named in a message by its id', async () => {
  const file = await client.files.create({
    file: await textFile('plan.md', 'The plan is simple'),
    purpose: 'user_data',
  });
  const content = [
    { type: 'text' as const, text: 'What is the plan?' },
    { type: 'file' as const, file: { file_id: file.id } },
  ];
  await client.chat.completions.create({ model: 'fake-1', messages: [{ role: 'user', content }] });
  const [request] = requestsWith(product.provider, 'What is the plan?');
  expect(JSON.stringify(request?.body.messages)).toContain('The plan is simple');
});

test('A thread that begins with a file alone has its name', async () => {
  const file = await client.files.create({ file: await textFile('route.md', 'Go north'), purpose: 'user_data' });
  const content = [{ type: 'file' as const, file: { file_id: file.id } }];
  const { response } = await client.chat.completions
    .create({ model: 'fake-1', messages: [{ role: 'user', content }] })
    .withResponse();
  const thread = await user.get<{ title: string }>(`/api/threads/${response.headers.get('x-thread-id')}`);
  expect(thread.title).toBe('route.md');
});

test('Nobody else’s file can be read, named or deleted', async () => {
  const file = await client.files.create({ file: await textFile('mine.txt', 'Mine'), purpose: 'user_data' });
  const stranger = clientOf(await product.user());
  await expect(stranger.files.retrieve(file.id)).rejects.toBeInstanceOf(NotFoundError);
  await expect(stranger.files.content(file.id)).rejects.toBeInstanceOf(NotFoundError);
  await expect(stranger.files.delete(file.id)).rejects.toBeInstanceOf(NotFoundError);
  const content = [{ type: 'file' as const, file: { file_id: file.id } }];
  const naming = stranger.chat.completions.create({ model: 'fake-1', messages: [{ role: 'user', content }] });
  await expect(naming).rejects.toMatchObject({ status: 400, code: 'FILE_NOT_FOUND' });
});

test('A key needs the drive’s scopes', async () => {
  const { key } = await product.identity.keys.create(user.id, { name: 'chat', scopes: ['chat'] });
  const withKey = clientOf({ ...user, token: key });
  await expect(withKey.files.list()).rejects.toBeInstanceOf(PermissionDeniedError);
  const content = [{ type: 'file' as const, file: { file_id: 'itm_1' } }];
  const naming = withKey.chat.completions.create({ model: 'fake-1', messages: [{ role: 'user', content }] });
  await expect(naming).rejects.toMatchObject({ status: 403, code: 'INSUFFICIENT_SCOPE' });
});

test('An upload without a file, or with an unknown purpose, is refused', async () => {
  const form = new FormData();
  form.set('purpose', 'user_data');
  const headers = { authorization: `Bearer ${user.token}` };
  const empty = await fetch(`${product.url}/v1/files`, { method: 'POST', headers, body: form });
  expect(await empty.json()).toMatchObject({ error: { code: 'CONTENT_REQUIRED', param: 'file' } });
  const odd = client.files.create({ file: await textFile('a.txt', 'a'), purpose: 'odd' as 'vision' });
  await expect(odd).rejects.toMatchObject({ status: 400, code: 'PURPOSE_UNKNOWN' });
});
