import { buffer } from 'node:stream/consumers';
import { ObjectStore } from '../../../integrations/storage/objectStore.ts';
import { maxInlineBytes, maxResultBytes, shorten } from '../../../models/chat/largeResults.ts';
import type { Turn } from '../../../models/chat/turn.ts';
import { driveModels } from '../../../models/drive/models.ts';
import { findByPath } from '../../../models/drive/place.ts';
import { buildIdentity, buildSpace, buildUser } from '../../builders/identity.ts';
import { buildTurn } from '../../builders/turnLog.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';

let environment: TestEnvironment;
let storage: ObjectStore;
let turn: Turn;

beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_DRIVE_QUOTA_MIB: '300' });
  storage = new ObjectStore(environment.config.storage);
  const identity = await buildIdentity(environment);
  const { user } = await buildUser(identity);
  const { space } = await buildSpace(identity, user.id);
  turn = await buildTurn(environment.database, { userId: user.id, spaceId: space.id });
});
afterAll(async () => {
  storage.close();
  await environment.close();
});

const deps = () => ({
  database: environment.database,
  storage,
  limits: environment.config.drive,
  onFailure: () => undefined,
});

async function contentOf(names: string[]): Promise<string> {
  const where = { spaceId: turn.spaceId, containerId: `thread:${turn.threadId}`, names };
  const found = await findByPath(environment.database, where);
  return (await buffer(await storage.read(found?.item.objectKey ?? ''))).toString();
}

test('A small result stays as it is', async () => {
  const text = 'x'.repeat(maxInlineBytes);
  expect(await shorten(deps(), turn, 'tcl_1', text)).toBe(text);
  expect(await shorten(deps(), turn, 'tcl_1', { a: [1, null] })).toEqual({ a: [1, null] });
  expect(await shorten(deps(), turn, 'tcl_1', undefined)).toBeNull();
});

test('A large result becomes a file of the thread with a preview, and a second run replaces the file', async () => {
  const text = `${'é'.repeat(maxInlineBytes / 2)}!`;
  for (let run = 0; run < 2; run++) {
    expect(await shorten(deps(), turn, 'tcl_2', text)).toEqual({
      isLarge: true,
      bytes: maxInlineBytes + 1,
      preview: 'é'.repeat(4_000),
      file: { containerId: `thread:${turn.threadId}`, path: '/tool-results/tcl_2.txt' },
    });
  }
  expect(await contentOf(['tool-results', 'tcl_2.txt'])).toBe(text);
  const value = { rows: Array.from({ length: 20_000 }, (_, row) => row) };
  expect(await shorten(deps(), turn, 'tcl_3', value)).toMatchObject({ file: { path: '/tool-results/tcl_3.json' } });
  expect(JSON.parse(await contentOf(['tool-results', 'tcl_3.json']))).toEqual(value);
});

test('No character is cut in two in the result, the preview or the file', async () => {
  const half = '😀'.slice(0, 1);
  expect(await shorten(deps(), turn, 'tcl_6', `a${half}`)).toBe('a\ufffd');
  const text = `x${'😀'.repeat(maxInlineBytes / 4)}`;
  const cut = await shorten(deps(), turn, 'tcl_7', text + half);
  expect(cut).toMatchObject({ isLarge: true, preview: `x${'😀'.repeat(1_999)}` });
  expect(await contentOf(['tool-results', 'tcl_7.txt'])).toBe(`${text}\ufffd`);
  await shorten(deps(), turn, 'tcl_8', { text: text + half });
  expect(JSON.parse(await contentOf(['tool-results', 'tcl_8.json']))).toEqual({ text: `${text}\ufffd` });
});

test('A result over 100 MB is refused, and with a full drive only the preview is kept', async () => {
  await expect(shorten(deps(), turn, 'tcl_4', 'x'.repeat(maxResultBytes + 1))).rejects.toMatchObject({
    code: 'TOOL_RESULT_TOO_LARGE',
  });
  expect(await shorten(deps(), turn, 'tcl_5', 'x'.repeat(maxResultBytes))).toMatchObject({ bytes: maxResultBytes });
  await driveModels(environment.database).Drive.update(
    { usedBytes: 300 * 1_048_576 },
    { where: { spaceId: turn.spaceId } },
  );
  expect(await shorten(deps(), turn, 'tcl_6', 'x'.repeat(maxInlineBytes + 1))).toMatchObject({
    isLarge: true,
    file: null,
  });
});
