import { createHash, randomBytes } from 'node:crypto';
import { Op } from 'sequelize';
import { driveModels } from '../../models/drive/models.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildDrive, driveOf, expectNoOrphans, type ItemBody, problemOf, type TestDrive } from '../builders/drive.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { type Room, type SmallStore, shortageHere, startSmallStore } from '../support/smallStore.ts';
import { waitFor } from '../support/waitFor.ts';

/** An object store that runs out of room. Nothing is half done, and a refused upload works when there is room again. */
const mebibyte = 1_048_576;
const bytes = new Uint8Array(randomBytes(20 * mebibyte));
const sha256 = createHash('sha256').update(bytes).digest('hex');

const shortage = shortageHere();
describe(shortage, () => {
  let store: SmallStore;
  let product: TestDrive;
  let user: ChatUser;
  let drive: ReturnType<typeof driveOf>;
  beforeAll(async () => {
    store = await startSmallStore(shortage);
    product = await buildDrive(hurriedSweeper, store.environment);
  });
  afterAll(async () => {
    await product.close();
    await store.stop();
  });
  beforeEach(async () => {
    store.makeRoom();
    user = await product.user();
    drive = driveOf(product, user);
  });
  const code = shortage === 'full disk' ? 'STORAGE_FULL' : 'STORAGE_UNAVAILABLE';

  test.each<[string, Uint8Array<ArrayBuffer>, Room]>([
    ['a small file', bytes.slice(0, 1_000), 'none'],
    ['a file whose first parts have room', bytes, 'aPart'],
    ['a file whose parts have room, and not the whole beside them', bytes, 'theParts'],
  ])('%s: 503, nothing is half done, and a retry works when there is room', async (_name, content, room) => {
    const kept = await drive.put('/kept.txt', 'kept');
    store.fill(room);
    const refused = await drive.upload({ path: '/new/file.bin' }, { bytes: content });
    expect([refused.status, (await problemOf(refused)).code]).toEqual([503, code]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    // The parts are removed at once, because they take the missing room. The sweeper looks only for late ones.
    expect(
      await driveModels(product.environment.database).DriveObject.count({
        where: { spaceId: user.spaceId, state: ['arriving', 'doomed'], size: { [Op.gt]: 0 } },
      }),
    ).toBe(0);
    await expectNoOrphans(product, user.spaceId);
    expect(await driveModels(product.environment.database).Drive.usedBytesOf(user.spaceId)).toBe(4);
    expect(await drive.names()).toEqual(['kept.txt']);
    // Existing objects can still be read, changed and removed.
    expect(await drive.content(kept.id)).toBe('kept');
    expect((await drive.send('DELETE', `/items/${kept.id}?permanent=true`)).status).toBe(204);
    store.makeRoom();
    expect(await drive.put('/new/file.bin', content)).toMatchObject({ path: '/new/file.bin', size: content.length });
    await expectNoOrphans(product, user.spaceId);
  });

  test('Parts that a full store refused can be sent again, and the upload is completed when there is room', async () => {
    const begun = await drive.send('POST', '/uploads', { path: '/large.bin', size: bytes.length });
    const upload = (await begun.json()) as {
      id: string;
      partSize: number;
      parts: { partNumber: number; size: number; url: string }[];
    };
    const send = async ({ partNumber, size, url }: (typeof upload.parts)[number]) => {
      const at = (partNumber - 1) * upload.partSize;
      const sent = await fetch(url, { method: 'PUT', body: bytes.slice(at, at + size) }).catch(() => undefined);
      return sent?.status ?? 500;
    };
    store.fill('none');
    for (const part of upload.parts) expect(await send(part)).toBeGreaterThanOrEqual(500);
    const early = await drive.send('POST', `/uploads/${upload.id}/complete`);
    expect([early.status, (await problemOf(early)).code]).toEqual([409, 'UPLOAD_INCOMPLETE']);
    store.makeRoom();
    for (const part of upload.parts) expect(await send(part)).toBe(200);
    // Now there is no room for the whole file beside its parts, so the completion waits.
    store.fill('none');
    const completing = drive.send('POST', `/uploads/${upload.id}/complete`);
    await waitFor(
      'the completion to begin',
      async () => (await driveModels(product.environment.database).DriveUpload.findByPk(upload.id))?.operationId,
    );
    store.makeRoom();
    const completed = await completing;
    expect([completed.status, await completed.json()]).toMatchObject([200, { sha256 } satisfies Partial<ItemBody>]);
    await expectNoOrphans(product, user.spaceId);
  });
});
