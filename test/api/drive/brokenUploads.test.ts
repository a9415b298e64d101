import { driveModels } from '../../../models/drive/models.ts';
import type { ChatUser } from '../../builders/chat.ts';
import {
  buildDrive,
  driveOf,
  expectNoOrphans,
  problemOf,
  type TestDrive,
  type UploadBody,
} from '../../builders/drive.ts';
import { openBy, residentMiB } from '../../support/processes.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { end, field, file, part, type RawUpload, sendRaw } from '../../support/rawUpload.ts';
import { sizeOf } from '../../support/size.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Uploads that break off, lie, are malformed, or try to get out of the drive. None leaves anything behind. */

/** `ATRIUM_TEST_ABORTED_UPLOADS=1000 npm test -- test/api/drive/brokenUploads.test.ts` is the long run. */
const abortedUploads = sizeOf('ATRIUM_TEST_ABORTED_UPLOADS', 60);
const mebibyte = 1_048_576;

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

const raw = (body: readonly Buffer[], options: Partial<RawUpload> = {}) =>
  sendRaw({
    ...{ url: product.url, token: user.token, path: `/api/spaces/${user.spaceId}/drive/upload` },
    body: Buffer.concat(body),
    ...options,
  });

/**
 * The upload has left nothing in the tree, in the account and in the store: at once, or once the server has seen that
 * the sender is gone.
 */
async function expectNothing(): Promise<void> {
  await waitFor('nothing to be left of the upload', async () => {
    const where = { spaceId: user.spaceId, state: ['arriving', 'kept'] };
    if ((await driveModels(product.environment.database).DriveObject.count({ where })) > 0) return false;
    return expectNoOrphans(product, user.spaceId).then(
      () => true,
      () => false,
    );
  });
  expect(await drive.names()).toEqual([]);
}

describe('a path or a name that would lead out of the drive', () => {
  const refused = ['../x', '/a/../../x', 'a/..', './x', '/a/./b', 'a\nb', 'a\u007Fb', 'x\u0085\u0001'];
  test.each(refused)('%j is refused', async (path) => {
    const response = await raw([field('path', path), file('x'), end]);
    expect(response).toEqual({ status: 422, code: 'INVALID_NAME' });
    for (const query of [`path=${encodeURIComponent(path)}`, `path=${encodeURIComponent(encodeURIComponent(path))}`]) {
      expect([404, 422]).toContain((await drive.send('GET', `/items?${query}`)).status);
      expect([404, 422]).toContain((await drive.send('GET', `/fs/tree?${query}`)).status);
    }
    expect((await drive.send('POST', '/folders', { path })).status).toBe(422);
    await expectNothing();
  });

  test('400 for NUL in a path', async () => {
    const path = 'a\u0000b';
    expect(await raw([field('path', path), file('x'), end])).toEqual({ status: 400, code: 'INVALID_REQUEST' });
    expect((await drive.send('GET', `/items?path=${encodeURIComponent(path)}`)).status).toBe(400);
    expect((await drive.send('GET', `/fs/tree?path=${encodeURIComponent(path)}`)).status).toBe(400);
    expect((await drive.send('POST', '/folders', { path })).status).toBe(400);
    await expectNothing();
  });

  test.each([
    ['an overlong dot', [0xc0, 0xae, 0xc0, 0xae, 0x2f, 0x78]],
    ['an overlong slash', [0x2e, 0x2e, 0xc0, 0xaf, 0x78]],
    ['half a character', [0x61, 0xe2, 0x82]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
  ])('400 for bytes that are not UTF-8: %s', async (_name, bytes) => {
    const response = await raw([field('path', Buffer.from(bytes)), file('x'), end]);
    expect(response).toEqual({ status: 400, code: 'INVALID_REQUEST' });
    await expectNothing();
  });

  // These are characters like any other: nothing decodes them again.
  test.each(['%2e%2e%2fx', '..%2fx', '..\\x', '%00', '．．／x', '..;', '...', '‥', 'C:\\x', '~', '$HOME', '-rf'])(
    '%j is a name, and is kept as it is',
    async (name) => {
      const response = await drive.upload({ path: `/${name}` }, { bytes: 'x' });
      const { path, id } = (await response.json()) as UploadBody;
      expect(path).toBe(`/${name}`);
      expect(await drive.get(`/items?path=${encodeURIComponent(path)}`)).toMatchObject({ data: [{ id, name }] });
      expect(await drive.names()).toEqual([name]);
    },
  );

  test.each([
    ['filename="../../etc/passwd"', '/passwd'],
    ['filename="C:\\\\windows\\\\system.ini"', '/system.ini'],
    ["filename*=UTF-8''..%2F..%2Fetc%2Fpasswd", '/passwd'],
    ['filename="/etc/passwd"', '/passwd'],
  ])('Folders in a file’s own name are left out: %s', async (disposition, expected) => {
    await raw([part(`Content-Disposition: form-data; name="file"; ${disposition}`, 'x'), end]);
    expect(await drive.names()).toEqual([expected.slice(1)]);
  });

  test.each(['filename=".."', 'filename="../.."', "filename*=UTF-8''%2E%2E", 'filename=""'])(
    'A file’s own name that is not a name is refused: %s',
    async (disposition) => {
      const response = await raw([part(`Content-Disposition: form-data; name="file"; ${disposition}`, 'x'), end]);
      expect([400, 422]).toContain(response?.status);
      await expectNothing();
    },
  );

  test('422 for names that are too long, and for paths that are too deep', async () => {
    for (const path of ['x'.repeat(256), 'é'.repeat(128), 'a/'.repeat(101), 'x/'.repeat(3_000)]) {
      const response = await raw([field('path', path), file('x'), end]);
      expect([path.length, response?.status]).toEqual([path.length, 422]);
    }
    await expectNothing();
    const longest = 'é'.repeat(127);
    expect(await drive.put(`/${longest}`)).toMatchObject({ path: `/${longest}` });
  });
});

describe('a body that is not what its headers claim', () => {
  const whole = [field('path', '/a/'), file('x'.repeat(100_000))];

  test.each<[string, Buffer[], ...Partial<RawUpload>[]]>([
    ['no body at all', []],
    ['no end', whole],
    ['no end, within the file', [field('path', '/a/'), file('x'.repeat(100_000)).subarray(0, 50_000)]],
    ['no end, within a part’s header', [...whole, Buffer.from('--b-o-u-n-d-a-r-y\r\nContent-Dispo')]],
    ['no end, after a second file has begun', [...whole, file('y'.repeat(100_000)).subarray(0, 90_000)]],
    ['another boundary', [...whole, end], { contentType: 'multipart/form-data; boundary=other' }],
    ['no boundary', [...whole, end], { contentType: 'multipart/form-data' }],
    ['no multipart', [Buffer.from('{"a":1}')]],
    ['only fields', [field('path', '/a/'), end]],
    ['a field after the file', [file('x'), field('path', '/a.txt'), end]],
    ['a field that is not taken', [field('paht', '/a/'), file('x'), end]],
    ['a field that is too long', [field('path', 'x'.repeat(17_000)), file('x'), end]],
    ['a file by another name', [part('Content-Disposition: form-data; name="upload"; filename="a"', 'x'), end]],
    ['an onConflict that is none', [field('onConflict', 'merge'), file('x'), end]],
  ])('400 for %s', async (_name, body, ...[options]) => {
    const response = await raw(body, options);
    expect(response?.status).toBe(400);
    expect(response?.code).toMatch(/^(INVALID_MULTIPART|INVALID_REQUEST)$/);
    await expectNothing();
  });

  test.each([
    ['too many files', Array.from({ length: 101 }, (_, i) => file('x', `${i}`))],
    ['too many fields', [...Array.from({ length: 201 }, () => field('path', '/a/')), file('x')]],
  ])('413 for %s', async (_name, body) => {
    expect(await raw([...body, end])).toEqual({ status: 413, code: 'TOO_MANY_PARTS' });
    await expectNothing();
  });

  test('415 for a body that is not a form', async () => {
    expect((await raw([Buffer.from('{}')], { contentType: 'application/json' }))?.status).toBe(415);
    await expectNothing();
  });

  test('A body that is shorter than its length leaves nothing, once the sender is gone', async () => {
    const body = [...whole, end];
    await raw(body, { contentLength: Buffer.concat(body).length + 1_000, hangUp: true });
    await expectNothing();
  });

  test('400 for a body that is longer than its length', async () => {
    // The rest looks like another request, and a bad one, whose refusal may overtake the answer.
    const response = await raw([...whole, end], { contentLength: 50_000 });
    expect(response?.status ?? 400).toBe(400);
    await expectNothing();
  });

  test('400 for a length that makes no sense', async () => {
    for (const contentLength of [-1, Number.NaN]) {
      expect((await raw([...whole, end], { contentLength }))?.status).toBe(400);
    }
    await expectNothing();
  });
});

test('a sender of a large body that is refused early still gets the reason', async () => {
  await drive.put('/taken.bin');
  const response = await drive.upload({ path: '/taken.bin' }, { bytes: new Uint8Array(30 * mebibyte) });
  expect([response.status, (await problemOf(response)).code]).toEqual([409, 'NAME_TAKEN']);
});

test(`${abortedUploads} uploads that are given up half-way leave no descriptor, memory, object or part`, async () => {
  const databasePort = Number(new URL(product.environment.config.database.url).port);
  const open = () => openBy(product.process.pid, databasePort);
  const giveUp = (bytes: number) =>
    raw([field('path', '/a/'), file(Buffer.alloc(bytes, 'x'))], { contentLength: 100 * mebibyte, hangUp: true });
  // The first uploads open the connections that all of them share.
  const sizes = [1, 100_000, 9 * mebibyte];
  for (let round = 0; round < 5; round++) await Promise.all(sizes.map(giveUp));
  await expectNothing();
  const before = { open: open(), residentMiB: residentMiB(product.process.pid) };
  for (let sent = 0; sent < abortedUploads; sent += sizes.length) await Promise.all(sizes.map(giveUp));
  await expectNothing();
  await waitFor('the descriptors to be closed', () => open().length <= before.open.length + 5).catch((error) => {
    throw new Error(`Open before:\n${before.open.join('\n')}\nand now:\n${open().join('\n')}`, { cause: error });
  });
  expect(residentMiB(product.process.pid)).toBeLessThan(before.residentMiB + 150);
  expect(
    await driveModels(product.environment.database).DriveItem.count({ where: { spaceId: user.spaceId, kind: 'file' } }),
  ).toBe(0);
}, 600_000);
