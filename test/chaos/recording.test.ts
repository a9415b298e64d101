import { buildChatUser } from '../builders/chat.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { type Recording, recordingsOf, savedBytes } from '../builders/recording.ts';
import { getDesktopPrograms } from '../support/desktopPrograms.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { withVideo } from '../support/video.ts';
import { waitFor } from '../support/waitFor.ts';

let product: TestProduct;

beforeAll(async () => {
  await getDesktopPrograms();
  product = await buildHostingProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
}, 300_000);
afterAll(() => product?.close());

async function killAll(): Promise<void> {
  await product.process.kill('SIGKILL');
  await product.restart();
}

async function rowOf(): Promise<{ id: string; status: string } | undefined> {
  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT id, status FROM desktop_recordings ORDER BY id DESC LIMIT 1');
  return (rows as { id: string; status: string }[])[0];
}

async function itemsOf({ user }: TestComputer): Promise<string[]> {
  const path = `/api/spaces/${user.spaceId}/drive/items?path=/Recordings`;
  const response = await user.fetch(path);
  if (response.status === 404) return [];
  return ((await response.json()) as { data: { name: string }[] }).data.map(({ name }) => name);
}

test('After kills at any moment each recording is in the drive once', async () => {
  const computer = await buildComputer(product, await buildChatUser(product));
  const { id } = await computer.expect<{ id: string }>(200, 'POST', '/desktop/sessions', { resolution: '640x480' });
  const recordings = recordingsOf(computer, id);
  const recorders = async () => Number((await computer.exec("pgrep -fc '^ffmpeg.*x11grab'")).stdout);

  // Killed while it starts: it records once.
  const lost = recordings.start({ name: 'first' }).catch(() => undefined);
  const first = await waitFor('the row of the recording', rowOf);
  await killAll();
  await lost;
  await recordings.until(first.id, 'recording');
  expect(await recorders()).toBe(1);

  // Killed while it records: it goes on.
  await killAll();
  expect((await recordings.get(first.id)).status).toBe('recording');
  expect(await recorders()).toBe(1);

  // Killed while it is stopped and saved, a little later each time.
  for (const [round, status] of ['stopping', 'saving', 'saving', 'saved'].entries()) {
    const recording = round === 0 ? first : await recordings.start({ name: `round ${round}` });
    const stopped = recordings.stop(recording.id).catch(() => undefined);
    const order = ['starting', 'recording', 'stopping', 'saving', 'saved'];
    await waitFor(status, async () => order.indexOf((await rowOf())?.status ?? '') >= order.indexOf(status));
    await killAll();
    await stopped;
    await expectSaved(await recordings.until(recording.id, 'saved'));
  }
  expect(await itemsOf(computer)).toEqual(['first.mp4', 'round 1.mp4', 'round 2.mp4', 'round 3.mp4']);
  await waitFor('the files to be removed', async () => {
    return (await computer.exec('ls -A .atrium/recordings')).stdout === '' || undefined;
  });

  // Killed while it is discarded.
  const last = await recordings.start({ name: 'last' });
  const deleted = computer.fetch(`${recordings.path}/${last.id}`, { method: 'DELETE' }).catch(() => undefined);
  await waitFor('the row of the recording', async () => (await rowOf())?.status.startsWith('discard'));
  await killAll();
  await deleted;
  await waitFor('the recording to be discarded', async () => (await rowOf())?.status === 'discarded');
  await waitFor('the recorder to end', async () => (await recorders()) === 0);
  expect(await itemsOf(computer)).toHaveLength(4);

  async function expectSaved(recording: Recording): Promise<void> {
    const { frames } = await withVideo(await savedBytes(computer, recording), async (video) => video);
    expect(frames).toBeGreaterThan(0);
  }
}, 300_000);
