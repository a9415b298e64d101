import { driveModels } from '../../../models/drive/models.ts';
import { idempotencyModels } from '../../../models/operations/idempotency.ts';
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

/** Uploads with an Idempotency-Key: a client that lost the answer repeats the upload, and gets the same answer. */
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

const once = { 'idempotency-key': 'once' };
const send = (fields: Record<string, string>, files: SentFile[], as = drive) =>
  as.send('POST', '/upload', formOf(fields, files), once);
const files = [
  { bytes: 'one', name: 'a.txt' },
  { bytes: 'two', name: 'b.txt' },
];

test.each(['error', 'rename', 'replace'])(
  'With onConflict %s, a repeat gets the first answer and does nothing',
  async (onConflict) => {
    const fields = { path: '/new/', onConflict };
    const first = await send(fields, files);
    const answer = (await first.json()) as UploadBody;
    const again = await send(fields, files);
    expect([first.status, again.status, await again.json()]).toEqual([200, 200, answer]);
    expect(await drive.names('/new')).toEqual(['a.txt', 'b.txt']);
    expect(await drive.item(answer.id)).toMatchObject({ version: 1 });
    expect(
      await driveModels(product.environment.database).DriveObject.count({ where: { spaceId: user.spaceId } }),
    ).toBe(2);
    await expectNoOrphans(product, user.spaceId);
  },
);

test.each<[string, Record<string, string>, SentFile[]]>([
  ['other bytes', { path: '/new/' }, [{ bytes: 'three', name: 'a.txt' }]],
  ['another name', { path: '/new/' }, [{ bytes: 'one', name: 'c.txt' }]],
  ['another place', { path: '/other/' }, [{ bytes: 'one', name: 'a.txt' }]],
  ['more files', { path: '/new/' }, files],
])('422 for the same key with %s, and nothing is done', async (_name, fields, other) => {
  expect((await send({ path: '/new/' }, files.slice(0, 1))).status).toBe(200);
  const response = await send(fields, other);
  expect([response.status, (await problemOf(response)).code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
  expect(await drive.names()).toEqual(['new/']);
  expect(await drive.names('/new')).toEqual(['a.txt']);
  await expectNoOrphans(product, user.spaceId);
});

test('A refused upload leaves its key free for the next attempt', async () => {
  const { id } = await drive.put('/new/b.txt');
  const refused = await send({ path: '/new/' }, files);
  expect([refused.status, (await problemOf(refused)).code]).toEqual([409, 'NAME_TAKEN']);
  expect(await idempotencyModels(product.environment.database).Idempotency.count({ where: { caller: user.id } })).toBe(
    0,
  );
  await drive.send('DELETE', `/items/${id}?permanent=true`);
  expect((await send({ path: '/new/' }, files)).status).toBe(200);
});

test('Five simultaneous uploads are done once, and early repeats are told to retry', async () => {
  const bytes = new Uint8Array(9 * 1_048_576);
  const upload = () => send({ path: '/', onConflict: 'rename' }, [{ bytes, name: 'a.bin' }]);
  const responses = await Promise.all(Array.from({ length: 5 }, upload));
  const answers: UploadBody[] = [];
  for (const response of responses) {
    if (response.status === 200) answers.push((await response.json()) as UploadBody);
    else expect([response.status, (await problemOf(response)).code]).toEqual([409, 'IDEMPOTENCY_KEY_IN_FLIGHT']);
  }
  expect(await (await upload()).json()).toEqual(answers[0]);
  expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
  expect(await drive.names()).toEqual(['a.bin']);
  await expectNoOrphans(product, user.spaceId);
});

test('Each caller has keys of their own, and a caller without access gets no stored answer', async () => {
  const colleague = await product.user();
  await product.identity.members.add(user.spaceId, colleague.email, 'editor');
  const theirs = driveOf(product, { token: colleague.token, spaceId: user.spaceId });
  expect((await send({ path: '/' }, files)).status).toBe(200);
  expect((await send({ path: '/' }, files, theirs)).status).toBe(409);
  expect((await send({ path: '/theirs/' }, files, theirs)).status).toBe(200);
  await user.fetch(`/api/spaces/${user.spaceId}/members/${colleague.id}`, { method: 'DELETE' });
  expect((await send({ path: '/theirs/' }, files, theirs)).status).toBe(404);
});

test('A repeat without a file is refused like a first request', async () => {
  expect((await send({ path: '/' }, files)).status).toBe(200);
  expect((await send({ path: '/' }, [])).status).toBe(400);
});
