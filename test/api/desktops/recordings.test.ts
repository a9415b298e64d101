import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { type Recording, recordingsOf, savedBytes } from '../../builders/recording.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { withVideo } from '../../support/video.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('desktops');

const sessions = '/desktop/sessions';
let product: TestProduct;

beforeAll(async () => {
  await getDesktopPrograms();
  product = await buildHostingProduct();
}, 300_000);
afterAll(() => product?.close());

interface Desktop {
  computer: TestComputer;
  id: string;
  display: string;
  recordings: ReturnType<typeof recordingsOf>;
  paint(colour: string): Promise<void>;
}

async function buildDesktop(resolution = '800x600', on?: TestComputer): Promise<Desktop> {
  const computer = on ?? (await buildComputer(product));
  const { id, display } = await computer.expect<Desktop>(200, 'POST', sessions, { resolution });
  return {
    computer,
    id,
    display,
    recordings: recordingsOf(computer, id),
    async paint(colour) {
      await computer.exec(`xsetroot -display ${display} -solid '${colour}'`);
    },
  };
}

/** Waits until so many seconds are written. The computer itself polls: a request for each look takes much CPU time. */
async function written({ computer }: Desktop, { id }: Pick<Recording, 'id'>, seconds: number): Promise<void> {
  const file = `.atrium/recordings/${id}.part.mp4`;
  const duration = `ffprobe -v error -show_entries format=duration -of csv=p=0 ${file}`;
  const isWritten = `${duration} | awk '{ isWritten = $1 + 0 >= ${seconds} } END { exit !isWritten }'`;
  expect(await computer.exec(`until ${isWritten}; do sleep 0.5; done`)).toMatchObject({ exitCode: 0 });
}
const filesOn = async ({ computer }: Desktop) => (await computer.exec('ls -A .atrium/recordings')).stdout;
const countOf = async ({ computer }: Desktop, program: string) =>
  Number((await computer.exec(`pgrep -c ${program}`)).stdout);

describe('a recording of a desktop', () => {
  let desktop: Desktop;
  beforeAll(async () => {
    desktop = await buildDesktop();
  });

  test('A recording shows what was on the screen, and becomes a file of the drive when it is stopped', async () => {
    const { recordings, computer } = desktop;
    await desktop.paint('#c00000');
    const recording = await recordings.start({ name: 'demo' });
    expect(recording).toMatchObject({ status: 'recording', name: 'demo.mp4', resolution: '800x600', end: null });
    expect(await computer.expect(200, 'GET', `${sessions}/${desktop.id}`)).toMatchObject({ recordingId: recording.id });
    await written(desktop, recording, 3);
    await desktop.paint('#0000c0');
    await written(desktop, recording, 6);

    const saved = await recordings.stop(recording.id);
    expect(saved).toMatchObject({ status: 'saved', end: { code: 'RECORDING_STOPPED' }, error: null });
    expect(await computer.expect(200, 'GET', `${sessions}/${desktop.id}`)).toMatchObject({ recordingId: null });
    const item = await computer.user.get(`/api/spaces/${computer.user.spaceId}/drive/items/${saved.itemId}`);
    expect(item).toMatchObject({ path: '/Recordings/demo.mp4', contentType: 'video/mp4', size: saved.size });
    await withVideo(await savedBytes(computer, saved), async (video) => {
      expect(video).toMatchObject({ codec: 'h264', width: 800, height: 600 });
      expect(video.durationSeconds).toBeCloseTo(saved.durationSeconds ?? 0, 1);
      expect(video.durationSeconds).toBeGreaterThan(5.5);
      const [red, , none] = await video.at(1, 200, 150);
      expect([red > 150, none < 60]).toEqual([true, true]);
      const [gone, , blue] = await video.at(video.durationSeconds - 0.3, 200, 150);
      expect([gone < 60, blue > 150]).toEqual([true, true]);
    });

    // Nothing is left on the computer, and a second stop does no harm.
    await waitFor('the file to be removed', async () => (await filesOn(desktop)) === '');
    expect(await countOf(desktop, 'ffmpeg')).toBe(0);
    expect(await recordings.stop(recording.id)).toEqual(saved);
    const problem = await computer.expect<{ code: string }>(409, 'DELETE', `${recordings.path}/${recording.id}`);
    expect(problem.code).toBe('RECORDING_SAVED');
  });

  full.test('A recording is saved in the named folder, and a taken name gets a number', async () => {
    const { recordings, computer } = desktop;
    const drive = `/api/spaces/${computer.user.spaceId}/drive`;
    const folder = await computer.user.fetch(`${drive}/folders`, { method: 'POST', body: { path: '/clips' } });
    const { id: parentId } = (await folder.json()) as { id: string };
    const paths = [];
    for (const place of [{ parentId }, { path: '/clips' }, { path: '/a/b' }]) {
      const { id } = await recordings.start({ name: 'x.mp4', framesPerSecond: 2, ...place });
      const { itemId } = await recordings.stop(id);
      paths.push((await computer.user.get<{ path: string }>(`${drive}/items/${itemId}`)).path);
    }
    expect(paths).toEqual(['/clips/x.mp4', '/clips/x (2).mp4', '/a/b/x.mp4']);
    expect((await recordings.list()).map(({ name }) => name)).toEqual(['x.mp4', 'x.mp4', 'x.mp4', 'demo.mp4']);
  });

  test('A session has one recording at a time, and the same Idempotency-Key starts one', async () => {
    const { recordings, computer } = desktop;
    const once = () =>
      computer.fetch(recordings.path, { method: 'POST', body: {}, headers: { 'idempotency-key': 'recording-1' } });
    const [first, second] = [await once(), await once()];
    expect([first.status, second.status]).toEqual([201, 201]);
    const { id, name } = (await first.json()) as Recording;
    expect(name).toMatch(/^Desktop \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.mp4$/);
    expect(((await second.json()) as Recording).id).toBe(id);
    expect((await computer.expect<{ code: string }>(409, 'POST', recordings.path, {})).code).toBe('RECORDING_RUNNING');
    // A discarded recording leaves nothing, and another one can be started.
    await computer.expect(204, 'DELETE', `${recordings.path}/${id}`);
    await computer.expect(204, 'DELETE', `${recordings.path}/${id}`);
    expect(await recordings.get(id)).toMatchObject({ status: 'discarded', itemId: null });
    expect(await countOf(desktop, 'ffmpeg')).toBe(0);
    await waitFor('the file to be removed', async () => (await filesOn(desktop)) === '');
    expect((await recordings.stop(id)).status).toBe('discarded');
    expect((await third()).status).toBe('discarded');

    /** As if the first request had been cut before its answer was stored. */
    async function third(): Promise<Recording> {
      const { pool } = product.environment.database;
      const forget =
        'UPDATE idempotency_keys SET response_status = NULL, response_body = NULL, claimed_at = ? WHERE object_id = ?';
      await pool.query(forget, [new Date(0), id]);
      return (await (await once()).json()) as Recording;
    }
  });

  test.each([
    [{ framesPerSecond: 0 }, 400, 'INVALID_REQUEST'],
    [{ framesPerSecond: 31 }, 400, 'INVALID_REQUEST'],
    [{ framesPerSecond: 1.5 }, 400, 'INVALID_REQUEST'],
    [{ maxSeconds: 0 }, 400, 'INVALID_REQUEST'],
    [{ maxSeconds: 43_201 }, 422, 'RECORDING_TOO_LONG'],
    [{ maxSeconds: 3_601 }, 422, 'RECORDING_TOO_LONG'],
    [{ name: '' }, 400, 'INVALID_REQUEST'],
    [{ name: 'a/b' }, 422, 'INVALID_NAME'],
    [{ name: 'x'.repeat(253) }, 422, 'INVALID_NAME'],
    [{ name: 7 }, 400, 'INVALID_REQUEST'],
    [{ other: 1 }, 400, 'INVALID_REQUEST'],
    [{ parentId: 'itm_nothing' }, 404, 'NOT_FOUND'],
    [{ parentId: 'itm_nothing', path: '/' }, 422, 'PATH_OR_PARENT'],
    [{ path: '/../x' }, 422, 'INVALID_NAME'],
    [{ path: '/Recordings/demo.mp4' }, 409, 'NOT_A_FOLDER'],
  ])('The request %j is refused', async (body, status, code) => {
    const { recordings, computer } = desktop;
    const problem = await computer.expect<{ code: string }>(status, 'POST', recordings.path, body);
    expect(problem.code).toBe(code);
    expect(await computer.expect(200, 'GET', `${sessions}/${desktop.id}`)).toMatchObject({ recordingId: null });
  });

  test('404 for another tenant, and in another session', async () => {
    const { recordings, computer } = desktop;
    const [recording] = await recordings.list();
    const other = computerOf(await product.user(), computer.id, computer.user.spaceId);
    const one = `${recordings.path}/${recording?.id}`;
    for (const path of [recordings.path, one]) await other.expect(404, 'GET', path);
    await other.expect(404, 'POST', recordings.path, {});
    for (const path of [`${one}/stop`, `${one}/save`]) await other.expect(404, 'POST', path, {});
    await other.expect(404, 'DELETE', one);
    const beside = await buildDesktop('640x480', computer);
    await computer.expect(404, 'GET', `${beside.recordings.path}/${recording?.id}`);
    await computer.expect(204, 'DELETE', `${sessions}/${beside.id}`);
  });

  test('A key needs a scope for the drive to record', async () => {
    const { recordings, computer } = desktop;
    const made = await computer.user.fetch('/api/keys', {
      method: 'POST',
      body: { name: 'bot', scopes: ['computers:write'] },
    });
    const { key } = (await made.json()) as { key: string };
    const response = await fetch(product.url + computer.path + recordings.path, {
      method: 'POST',
      body: '{}',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    expect([response.status, await response.json()]).toMatchObject([403, { code: 'INSUFFICIENT_SCOPE' }]);
  });
});

describe('The end of a recording', () => {
  full.test('A recording ends at its maximum length, and a display that is resized is scaled in it', async () => {
    const desktop = await buildDesktop('800x600');
    const { recordings, computer } = desktop;
    await desktop.paint('#c00000');
    const { id } = await recordings.start({ maxSeconds: 9, framesPerSecond: 5 });
    await written(desktop, { id }, 2);
    for (const resolution of ['1600x600', '640x480']) {
      await computer.expect(200, 'POST', `${sessions}/${desktop.id}/resize`, { resolution });
    }
    await desktop.paint('#00c000');
    const saved = await recordings.until(id, 'saved');
    expect(saved).toMatchObject({ end: { code: 'SECONDS_REACHED' }, resolution: '800x600' });
    await withVideo(await savedBytes(computer, saved), async (video) => {
      expect(video).toMatchObject({ width: 800, height: 600 });
      expect(video.durationSeconds).toBeCloseTo(9, 0);
      const [red, green] = await video.at(video.durationSeconds - 0.5, 100, 100);
      expect([red < 60, green > 150]).toEqual([true, true]);
    });
  });

  test('A recording ends with its session, and has what was seen until then', async () => {
    const desktop = await buildDesktop();
    const recording = await desktop.recordings.start();
    await written(desktop, recording, 2);
    await desktop.computer.expect(204, 'DELETE', `${sessions}/${desktop.id}`);
    // A request right after that already learns of the end.
    expect((await desktop.recordings.get(recording.id)).status).toMatch(/^sav/);
    const saved = await desktop.recordings.until(recording.id, 'saved');
    expect(saved.end?.code).toBe('DESKTOP_DELETED');
    await withVideo(await savedBytes(desktop.computer, saved), async ({ durationSeconds }) => {
      expect(durationSeconds).toBeGreaterThan(1.5);
    });
    const problem = await desktop.computer.expect<{ code: string }>(410, 'POST', desktop.recordings.path, {});
    expect(problem.code).toBe('DESKTOP_ENDED');
  });

  full.test('A recording ends with its X server', async () => {
    const desktop = await buildDesktop();
    const recording = await desktop.recordings.start();
    await written(desktop, recording, 2);
    await desktop.computer.exec('pkill -9 Xtigervnc');
    const saved = await desktop.recordings.until(recording.id, 'saved');
    expect(saved.end?.code).toBe('X_SERVER_ENDED');
    await withVideo(await savedBytes(desktop.computer, saved), async ({ frames }) => expect(frames).toBeGreaterThan(9));
  });

  full.test('A recording ends with its X server, also when another one takes the display at once', async () => {
    const desktop = await buildDesktop();
    const { computer, recordings, display } = desktop;
    await desktop.paint('#c00000');
    const recording = await recordings.start();
    await written(desktop, recording, 2);
    const another = `setsid Xtigervnc ${display} -geometry 800x600 -depth 24 -rfbport -1 -SecurityTypes None </dev/null >/dev/null 2>&1 &`;
    const isUp = `until xsetroot -display ${display} -solid '#0000c0'; do sleep 0.02; done 2>/dev/null`;
    const isGone = 'while pgrep Xtigervnc >/dev/null; do sleep 0.01; done';
    await computer.exec(`pkill -9 Xtigervnc; ${isGone}; rm -f /tmp/.X11-unix/X${display.slice(1)}; ${another} ${isUp}`);
    const saved = await recordings.until(recording.id, 'saved');
    expect(saved.end?.code).toBe('X_SERVER_ENDED');
    await withVideo(await savedBytes(computer, saved), async (video) => {
      const [red, , blue] = await video.at(video.durationSeconds - 0.2, 200, 150);
      expect([red > 150, blue < 60]).toEqual([true, true]);
    });
  });

  full.test('A recording that was given up with its host is stopped and saved when the host is back', async () => {
    const desktop = await buildDesktop();
    const recording = await desktop.recordings.start();
    await written(desktop, recording, 2);
    const { pool } = product.environment.database;
    const giveUp = `UPDATE desktop_recordings SET status = 'saving', running_on = NULL, end_code = 'HOST_LOST'
      WHERE id = ?`;
    await pool.query(giveUp, [recording.id]);
    const saved = await desktop.recordings.until(recording.id, 'saved');
    expect(saved.end?.code).toBe('HOST_LOST');
    expect(await countOf(desktop, 'ffmpeg')).toBe(0);
  });

  full.test.each(['writes', 'takes the pictures'])(
    'A recording ends when the process that %s is killed, and has what was written',
    async (which) => {
      const desktop = await buildDesktop();
      const recording = await desktop.recordings.start();
      await written(desktop, recording, 2);
      const format = which === 'writes' ? 'libx264' : 'x11grab';
      await desktop.computer.exec(`pkill -9 -f '^ffmpeg.*${format}'`);
      const saved = await desktop.recordings.until(recording.id, 'saved');
      expect(saved.end?.code).toBe('RECORDER_ENDED');
      await withVideo(await savedBytes(desktop.computer, saved), async ({ durationSeconds }) => {
        expect(durationSeconds).toBeGreaterThan(1.5);
      });
    },
    60_000,
  );

  full.test('A recording ends with its computer, and is saved while the computer is stopped', async () => {
    const desktop = await buildDesktop();
    const recording = await desktop.recordings.start();
    await written(desktop, recording, 2);
    await desktop.computer.expect(200, 'POST', '/stop');
    const saved = await desktop.recordings.until(recording.id, 'saved');
    expect(saved.end?.code).toBe('COMPUTER_STOPPED');
    await withVideo(await savedBytes(desktop.computer, saved), async ({ durationSeconds }) => {
      expect(durationSeconds).toBeGreaterThan(1.5);
    });
    expect(await desktop.computer.expect(200, 'GET', '')).toMatchObject({ status: 'stopped' });
  });

  full.test('A recording that is stopped on a paused computer is saved after the wake', async () => {
    const desktop = await buildDesktop();
    const recording = await desktop.recordings.start();
    await written(desktop, recording, 1);
    await desktop.computer.expect(200, 'POST', '/pause');
    expect(await desktop.recordings.stop(recording.id)).toMatchObject({ status: 'saving' });
    await desktop.computer.expect(200, 'POST', '/wake');
    const saved = await desktop.recordings.until(recording.id, 'saved');
    expect(saved.end?.code).toBe('RECORDING_STOPPED');
  });
});

describe('A recording that cannot be saved', () => {
  test('A recording whose maker may no longer change the drive waits until another editor saves it', async () => {
    const desktop = await buildDesktop();
    const { computer, recordings } = desktop;
    const { user } = computer;
    const editor = await product.user();
    await product.identity.members.add(user.spaceId, editor.email, 'editor');
    const theirs = recordingsOf(computerOf(editor, computer.id, user.spaceId), desktop.id);
    const { id } = await theirs.start();
    await user.fetch(`/api/spaces/${user.spaceId}/members/${editor.id}`, { method: 'DELETE' });
    expect(await recordings.stop(id)).toMatchObject({ status: 'failed', error: { code: 'RECORDING_FORBIDDEN' } });
    const saved = await computer.expect<Recording>(200, 'POST', `${recordings.path}/${id}/save`, {});
    expect(saved).toMatchObject({ status: 'saved', createdBy: editor.id });
    const { data } = await user.get<{ data: { action: string; target: string; actorId: string }[] }>(
      `/api/spaces/${user.spaceId}/audit`,
    );
    const told = data.filter(({ target }) => target === id).map(({ action }) => action);
    expect(told.toReversed()).toEqual([
      'desktop-recording.started',
      'desktop-recording.stopped',
      'desktop-recording.save-retried',
    ]);
  });

  full.test(
    'A recording is kept on the computer when its folder is gone, and can be saved to another folder',
    async () => {
      const desktop = await buildDesktop();
      const { recordings, computer } = desktop;
      const drive = `/api/spaces/${computer.user.spaceId}/drive`;
      const folder = await computer.user.fetch(`${drive}/folders`, { method: 'POST', body: { path: '/gone' } });
      const { id: parentId } = (await folder.json()) as { id: string };
      const { id } = await recordings.start({ parentId });
      await computer.user.fetch(`${drive}/items/${parentId}`, { method: 'DELETE' });
      const failed = await recordings.stop(id);
      expect(failed).toMatchObject({ status: 'failed', error: { code: 'FOLDER_GONE' }, itemId: null });
      expect(failed.computerPath).toBe(`.atrium/recordings/${id}.mp4`);
      expect(await filesOn(desktop)).toBe(`${id}.mp4\n`);
      const saved = await computer.expect<Recording>(200, 'POST', `${recordings.path}/${id}/save`, { path: '/kept' });
      expect(saved).toMatchObject({ status: 'saved', error: null, computerPath: null });
      expect(await computer.expect(200, 'POST', `${recordings.path}/${id}/save`, {})).toMatchObject({
        status: 'saved',
      });
      await withVideo(await savedBytes(computer, saved), async ({ frames }) => expect(frames).toBeGreaterThan(0));
    },
  );

  full.test('A file that was put in the place of a recording is not saved', async () => {
    const desktop = await buildDesktop();
    const { recordings, computer } = desktop;
    const { id } = await recordings.start();
    const put = (script: string) => computer.exec(`cd .atrium/recordings && ${script}`);
    await put(`echo '<h1>hello</h1>' > ${id}.mp4`);
    expect((await recordings.stop(id)).error?.code).toMatch(/^RECORDING_(DAMAGED|EMPTY)$/);
    const { id: next } = await recordings.start();
    await put(`ln -sf /etc/passwd ${next}.part.mp4`);
    expect((await recordings.stop(next)).error?.code).toMatch(/^RECORDING_(DAMAGED|EMPTY)$/);
    const { id: last } = await recordings.start();
    await put(`rm ${last}.part.mp4`);
    const lost = await recordings.stop(last);
    expect(lost).toMatchObject({ status: 'failed', error: { code: 'RECORDING_LOST' }, computerPath: null });
    const problem = await computer.expect<{ code: string }>(410, 'POST', `${recordings.path}/${last}/save`, {});
    expect(problem.code).toBe('RECORDING_GONE');
  });

  full.test('A recording is lost with its computer', async () => {
    const desktop = await buildDesktop();
    const { recordings, computer } = desktop;
    const { id } = await recordings.start();
    await written(desktop, { id }, 1);
    await computer.expect(204, 'DELETE', '');
    const failed = await waitFor('the failure', async () => {
      const { pool } = product.environment.database;
      const [rows] = await pool.query('SELECT status, error_code AS code FROM desktop_recordings WHERE id = ?', [id]);
      const [row] = rows as { status: string; code: string }[];
      return row?.status === 'failed' ? row : undefined;
    });
    expect(failed.code).toBe('RECORDING_LOST');
  });
});

full.test('A computer without ffmpeg gets 422 with the reason, and its desktop goes on', async () => {
  const computer = await buildComputer(product);
  // Programs are found by the computer's own PATH, which has all but ffmpeg.
  const links = 'mkdir bin; for p in /usr/bin/*; do case $p in */ff*) ;; *) ln -s $p bin/ ;; esac; done';
  expect((await computer.exec(links)).exitCode).toBe(0);
  await computer.expect(200, 'PATCH', '', { env: { PATH: '/home/user/bin' } });
  await computer.expect(200, 'POST', '/stop');
  const desktop = await buildDesktop('800x600', computer);
  const problem = await computer.expect<{ code: string; detail: string }>(422, 'POST', desktop.recordings.path, {});
  expect(problem).toMatchObject({ code: 'RECORDING_UNAVAILABLE' });
  expect(problem.detail).toContain('ffmpeg');
  expect(await desktop.recordings.list()).toMatchObject([{ status: 'failed', error: { code: problem.code } }]);
  expect(await computer.expect(200, 'GET', `${sessions}/${desktop.id}`)).toMatchObject({
    status: 'running',
    recordingId: null,
  });
});
