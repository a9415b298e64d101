import { createHash, randomBytes } from 'node:crypto';
import type { ChatUser } from '../../builders/chat.ts';
import { buildDrive, driveOf, expectNoOrphans, type ItemPage, type TestDrive } from '../../builders/drive.ts';
import { boundary, end, field, file, sendRaw } from '../../support/rawUpload.ts';

/** The content of a file arrives as it was sent, however it is cut on its way, and whatever it looks like. */
let product: TestDrive;
let user: ChatUser;
beforeAll(async () => {
  product = await buildDrive();
  user = await product.user();
});
afterAll(() => product.close());

/** Bytes that look like the end of the file again and again. */
function nearBoundaries(size: number): Buffer {
  const delimiter = `\r\n--${boundary}`;
  const pieces = Array.from({ length: delimiter.length - 1 }, (_, i) => delimiter.slice(0, i + 1)).join('x');
  return Buffer.alloc(size, `${pieces}${delimiter.slice(0, -1)}`);
}

const mebibyte = 1_048_576;
test.each([
  ['random bytes of three parts', randomBytes(17 * mebibyte + 1)],
  ['a part, to the byte', randomBytes(8 * mebibyte)],
  ['almost boundaries', nearBoundaries(9 * mebibyte + 5)],
  ['line ends', Buffer.alloc(2 * mebibyte + 1, '\r\n')],
])('A file of %s arrives unchanged, beside another file', async (name, bytes) => {
  const response = await sendRaw({
    ...{ url: product.url, token: user.token, path: `/api/spaces/${user.spaceId}/drive/upload` },
    body: Buffer.concat([field('path', `/${name}/`), file(bytes, 'a.bin'), file(bytes.subarray(1), 'b.bin'), end]),
  });
  expect(response).toEqual({ status: 200, code: undefined });
  const drive = driveOf(product, user);
  const { data } = await drive.get<ItemPage>(`/items?path=${encodeURIComponent(`/${name}`)}`);
  for (const [i, expected] of [bytes, bytes.subarray(1)].entries()) {
    const sha256 = createHash('sha256').update(expected).digest('hex');
    expect(data[i]).toMatchObject({ size: expected.length, sha256 });
    const content = await drive.send('GET', `/items/${data[i]?.id}/content`);
    expect(
      createHash('sha256')
        .update(await content.bytes())
        .digest('hex'),
    ).toBe(sha256);
  }
  await expectNoOrphans(product, user.spaceId);
});
