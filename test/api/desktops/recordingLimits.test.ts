import { buildComputer, buildHostingProduct } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { type Recording, recordingsOf } from '../../builders/recording.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { withVideo } from '../../support/video.ts';

const mebibyte = 1_048_576;
let product: TestProduct;

beforeAll(async () => {
  await getDesktopPrograms();
  product = await buildHostingProduct({ ATRIUM_DESKTOP_RECORDING_MAX_MIB: '1', ATRIUM_DRIVE_QUOTA_MIB: '1' });
}, 300_000);
afterAll(() => product?.close());

test('A recording ends at its size limit, and waits on its computer while the drive is full', async () => {
  const computer = await buildComputer(product);
  const session = await computer.expect<{ id: string; display: string }>(200, 'POST', '/desktop/sessions', {
    resolution: '1280x800',
  });
  const recordings = recordingsOf(computer, session.id);
  // A picture that changes everywhere all the time cannot be compressed well.
  const command = 'xterm -geometry 250x100+0+0 -e sh -c "while :; do head -c 20000 /dev/urandom | base64; done"';
  await computer.expect(201, 'POST', '/processes', { command, env: { DISPLAY: session.display } });

  const { id } = await recordings.start({ framesPerSecond: 5 });
  const full = await recordings.until(id, 'failed');
  expect(full).toMatchObject({ error: { code: 'QUOTA_EXCEEDED' }, end: { code: 'BYTES_REACHED' }, itemId: null });
  expect((await computer.exec('ls .atrium/recordings')).stdout).toBe(`${id}.mp4\n`);
  const file = await computer.fetch(`/files?path=${full.computerPath}`);
  const bytes = Buffer.from(await file.arrayBuffer());
  expect(bytes.length).toBeGreaterThan(0.8 * mebibyte);
  // The recording ends after the piece that exceeds the limit. A piece is a second, which is a few hundred KiB here.
  expect(bytes.length).toBeLessThan(3 * mebibyte);
  await withVideo(bytes, async ({ frames }) => expect(frames).toBeGreaterThan(1));

  // Saving fails a second time. Then the recording is discarded.
  const path = `${recordings.path}/${id}`;
  expect((await computer.expect<Recording>(200, 'POST', `${path}/save`, {})).error?.code).toBe('QUOTA_EXCEEDED');
  await computer.expect(204, 'DELETE', path);
  expect(await recordings.get(id)).toMatchObject({ status: 'discarded', computerPath: null });
});
