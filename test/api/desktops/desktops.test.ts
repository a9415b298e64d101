import { buildComputer, buildHostingProduct, computerOf, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { type Png, readPng } from '../../support/png.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('desktops');

interface Session {
  id: string;
  status: string;
  resolution: string;
  display: string;
  end: { code: string; detail: string } | null;
  endedAt: string | null;
}

const sessions = '/desktop/sessions';
let product: TestProduct;

beforeAll(async () => {
  await getDesktopPrograms();
  product = await buildHostingProduct();
}, 300_000);
afterAll(() => product?.close());

const start = (computer: TestComputer, resolution = '800x600') =>
  computer.expect<Session>(200, 'POST', sessions, { resolution });
const get = (computer: TestComputer, { id }: Session) => computer.expect<Session>(200, 'GET', `${sessions}/${id}`);
const ended = (computer: TestComputer, session: Session) =>
  waitFor('the end', async () => {
    const { end, endedAt } = await get(computer, session);
    expect(endedAt === null).toBe(end === null);
    return end ?? undefined;
  });

async function screenshot(computer: TestComputer, { id }: Session): Promise<Png> {
  const response = await computer.fetch(`${sessions}/${id}/screenshot`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
  return readPng(Buffer.from(await response.arrayBuffer()));
}

/** Fills the screen with one colour. */
async function paint(computer: TestComputer, { display }: Session, colour: string): Promise<void> {
  await computer.exec(`xsetroot -display ${display} -solid '${colour}'`);
}

/** The number of processes of a program in the computer. */
async function countOf(computer: TestComputer, program: string): Promise<number> {
  return Number((await computer.exec(`pgrep -c ${program}`)).stdout);
}

describe('a desktop session', () => {
  let computer: TestComputer;
  let session: Session;
  beforeAll(async () => {
    computer = await buildComputer(product);
    session = await start(computer, '1280x800');
  });

  test('A session wakes its computer, and shows what programs draw', async () => {
    expect(session).toMatchObject({ status: 'running', resolution: '1280x800', display: ':10', end: null });
    await paint(computer, session, '#204060');
    const { width, height, at } = await screenshot(computer, session);
    expect([width, height]).toEqual([1_280, 800]);
    expect(at(40, 40)).toEqual([0x20, 0x40, 0x60]);
    expect(at(1_279, 799)).toEqual([0x20, 0x40, 0x60]);
  });

  test('A session has a window manager, which shows the windows of programs and is restarted after a crash', async () => {
    await paint(computer, session, '#000000');
    const command = `xterm -bg '#c00000' -geometry 100x40+0+0`;
    await computer.expect(201, 'POST', '/processes', { command, env: { DISPLAY: session.display } });
    await waitFor('the window', async () => {
      const [red] = (await screenshot(computer, session)).at(300, 200);
      return red === 0xc0 || undefined;
    });
    await waitFor('openbox', async () => (await countOf(computer, 'openbox')) === 1);
    // A window manager that crashes is started again.
    await computer.exec('pkill -9 openbox');
    await waitFor('another openbox', async () => (await countOf(computer, 'openbox')) === 1);
  });

  test('A session without a requested size has 1280x800', async () => {
    const own = await buildComputer(product);
    for (const body of [undefined, {}]) {
      expect(await own.expect(200, 'POST', sessions, body)).toMatchObject({ resolution: '1280x800' });
    }
  });

  test('A running session and its windows can be resized', async () => {
    const bigger = await computer.expect<Session>(200, 'POST', `${sessions}/${session.id}/resize`, {
      resolution: '1920x1080',
    });
    expect(bigger).toMatchObject({ id: session.id, resolution: '1920x1080', status: 'running' });
    const { width, height } = await screenshot(computer, session);
    expect([width, height]).toEqual([1_920, 1_080]);
    const { stdout } = await computer.exec(`xrandr --display ${session.display} | head -1`);
    expect(stdout).toContain('current 1920 x 1080');
    // The same again changes nothing.
    await computer.expect(200, 'POST', `${sessions}/${session.id}/resize`, { resolution: '1920x1080' });
  });

  full.test('Twelve simultaneous screenshots all succeed', async () => {
    const pictures = await Promise.all(Array.from({ length: 12 }, () => screenshot(computer, session)));
    for (const { width, height } of pictures) expect([width, height]).toEqual([1_920, 1_080]);
  });

  test.each([
    '639x480',
    '640x479',
    '3841x2160',
    '3840x2161',
    '1280',
    '1280x',
    'x800',
    '1280X800',
    '-640x480',
    ' 640x480',
    '0x0',
    '',
  ])('400 for the resolution "%s", and the session goes on', async (resolution) => {
    for (const path of [sessions, `${sessions}/${session.id}/resize`]) {
      const problem = await computer.expect<{ code: string }>(400, 'POST', path, { resolution });
      expect(problem.code).toBe('RESOLUTION_INVALID');
    }
    expect(await get(computer, session)).toMatchObject({ status: 'running', resolution: '1920x1080' });
  });

  test('The X server takes nothing over the network, and its socket is for its own user alone', async () => {
    const { stdout } = await computer.exec(
      'cat /proc/net/tcp /proc/net/tcp6 | grep -ci " 0A .*:17[0-9A-F][0-9A-F]"; stat -c %a /tmp/.atrium /tmp/.atrium/*/rfb',
    );
    expect(stdout).toBe('0\n700\n600\n');
  });

  test('No other computer can reach the display', async () => {
    const { display } = session;
    const tries = `xset -display ${display} q >/dev/null 2>&1 && echo reached; ls -A /tmp/.X11-unix /tmp/.atrium 2>/dev/null | grep -c .; grep -c X11 /proc/net/unix`;
    const other = await buildComputer(product);
    expect((await other.exec(tries)).stdout).toBe('0\n0\n');
    // Inside the computer, the same commands reach the display.
    expect((await computer.exec(tries)).stdout).toMatch(/^reached\n[1-9]/);
  });

  test('404 for another tenant, and on another computer', async () => {
    const stranger = await product.user();
    const other = computerOf(stranger, computer.id, computer.user.spaceId);
    for (const path of [sessions, `${sessions}/${session.id}`, `${sessions}/${session.id}/screenshot`]) {
      await other.expect(404, 'GET', path);
    }
    const own = await buildComputer(product, stranger);
    await own.expect(404, 'GET', `${sessions}/${session.id}`);
    await own.expect(404, 'GET', `${sessions}/${session.id}/screenshot`);
    await own.expect(404, 'DELETE', `${sessions}/${session.id}`);
    expect((await get(computer, session)).status).toBe('running');
  });

  full.test('A computer has four sessions at most, each on a display of its own', async () => {
    const further = [await start(computer), await start(computer), await start(computer)];
    expect(further.map(({ display }) => display)).toEqual([':11', ':12', ':13']);
    await computer.expect(422, 'POST', sessions, { resolution: '800x600' });
    const { data } = await computer.expect<{ data: Session[] }>(200, 'GET', `${sessions}?limit=3`);
    expect(data.map(({ id }) => id)).toEqual(further.map(({ id }) => id).toReversed());
    for (const { id } of further) await computer.expect(204, 'DELETE', `${sessions}/${id}`);
    expect(await countOf(computer, 'Xtigervnc')).toBe(1);
    // The display is free again.
    const again = await start(computer);
    expect(again.display).toBe(':11');
    await computer.expect(204, 'DELETE', `${sessions}/${again.id}`);
  });

  test('A display that a program has made larger than the session is not shown', async () => {
    const other = await start(computer, '640x480');
    const { exitCode } = await computer.exec(`xrandr --display ${other.display} --output VNC-0 --mode 1920x1200`);
    expect(exitCode).toBe(0);
    const path = `${sessions}/${other.id}`;
    const problem = await computer.expect<{ code: string }>(409, 'GET', `${path}/screenshot`);
    expect(problem.code).toBe('DISPLAY_TOO_LARGE');
    await computer.expect(200, 'POST', `${path}/resize`, { resolution: '800x600' });
    const { width, height } = await screenshot(computer, other);
    expect([width, height]).toEqual([800, 600]);
    await computer.expect(204, 'DELETE', path);
  });

  test('Deleting a session ends it once', async () => {
    await computer.expect(204, 'DELETE', `${sessions}/${session.id}`);
    await computer.expect(204, 'DELETE', `${sessions}/${session.id}`);
    const { status, end, endedAt } = await get(computer, session);
    expect([status, end?.code]).toEqual(['ended', 'DESKTOP_DELETED']);
    expect(endedAt).not.toBeNull();
    expect(await countOf(computer, 'Xtigervnc')).toBe(0);
    const problem = await computer.expect<{ code: string }>(410, 'GET', `${sessions}/${session.id}/screenshot`);
    expect(problem.code).toBe('DESKTOP_ENDED');
  });
});

describe('The end of a desktop session', () => {
  test('A session ends with its X server, at the next request for the session', async () => {
    const computer = await buildComputer(product);
    const session = await start(computer);
    await computer.exec('pkill -9 Xtigervnc');
    expect(await ended(computer, session)).toMatchObject({ code: 'X_SERVER_ENDED' });
    await waitFor('the other programs to end', async () => (await countOf(computer, 'openbox')) === 0 || undefined);
    await waitFor('the display to be free', async () => (await get(computer, session)).status === 'ended');
    // The display is free for another session, which gets a window manager too.
    expect((await computer.exec('test -S /tmp/.X11-unix/X10')).exitCode).toBe(0);
    expect((await start(computer)).display).toBe(':10');
    await waitFor('the window manager', async () => (await countOf(computer, 'openbox')) === 1);
  });

  full.test('A session ends with its X server, also without a request for the session', async () => {
    const computer = await buildComputer(product);
    const session = await start(computer);
    await computer.exec('pkill -9 Xtigervnc');
    const { pool } = product.environment.database;
    await waitFor('the row of the session', async () => {
      const [rows] = await pool.query('SELECT end_code AS code FROM desktop_sessions WHERE id = ?', [session.id]);
      return (rows as { code: string | null }[])[0]?.code === 'X_SERVER_ENDED' || undefined;
    });
  });

  test('A session ends with its computer, and the next start of the computer has none', async () => {
    const computer = await buildComputer(product);
    const session = await start(computer);
    await computer.expect(200, 'POST', '/stop');
    expect(await ended(computer, session)).toMatchObject({ code: 'COMPUTER_STOPPED' });
    await computer.expect(410, 'GET', `${sessions}/${session.id}/screenshot`);
    await computer.expect(204, 'DELETE', `${sessions}/${session.id}`);
    const next = await start(computer);
    expect(next).toMatchObject({ status: 'running', display: ':10' });
    expect(next.id).not.toBe(session.id);
    expect((await get(computer, session)).end).toMatchObject({ code: 'COMPUTER_STOPPED' });
  });

  test('A session that was given up with its host is stopped before another one uses its display', async () => {
    const computer = await buildComputer(product);
    const lost = await start(computer);
    const { pool } = product.environment.database;
    const giveUp = "UPDATE desktop_sessions SET status = 'ended', end_code = 'HOST_LOST', ended_at = ? WHERE id = ?";
    await pool.query(giveUp, [new Date(), lost.id]);
    const next = await start(computer);
    expect(next).toMatchObject({ status: 'running', display: ':10' });
    expect(await countOf(computer, 'Xtigervnc')).toBe(1);
    await waitFor('the window manager', async () => (await countOf(computer, 'openbox')) === 1);
  });

  test('A session is not shown while its computer is paused, and goes on after the wake', async () => {
    const computer = await buildComputer(product);
    const session = await start(computer);
    await paint(computer, session, '#102030');
    await computer.expect(200, 'POST', '/pause');
    const problem = await computer.expect<{ code: string }>(409, 'GET', `${sessions}/${session.id}/screenshot`);
    expect(problem.code).toBe('COMPUTER_PAUSED');
    expect((await get(computer, session)).status).toBe('running');
    await computer.expect(200, 'POST', '/wake');
    expect((await screenshot(computer, session)).at(40, 40)).toEqual([0x10, 0x20, 0x30]);
  });
});

test('A computer without an X server gets 422 with the reason, and goes on', async () => {
  const computer = await buildComputer(product);
  // Programs are found by the computer's own PATH.
  await computer.expect(200, 'PATCH', '', { env: { PATH: '/nowhere' } });
  const problem = await computer.expect<{ code: string; detail: string }>(422, 'POST', sessions, {
    resolution: '800x600',
  });
  expect(problem).toMatchObject({ code: 'DESKTOPS_UNAVAILABLE' });
  expect(problem.detail).toContain('TigerVNC');
  expect((await computer.exec('/bin/echo fine')).stdout).toBe('fine\n');
});

test('The same Idempotency-Key starts one session', async () => {
  const computer = await buildComputer(product);
  const once = () =>
    computer.user.fetch(`${computer.path}${sessions}`, {
      method: 'POST',
      body: { resolution: '800x600' },
      headers: { 'idempotency-key': 'desktop-1' },
    });
  const [first, second] = [await once(), await once()];
  expect([first.status, second.status]).toEqual([200, 200]);
  const { id } = (await first.json()) as Session;
  expect(((await second.json()) as Session).id).toBe(id);
  expect(await countOf(computer, 'Xtigervnc')).toBe(1);

  // As if the first request had been cut before its answer was stored, and the session has ended since.
  await computer.expect(204, 'DELETE', `${sessions}/${id}`);
  const { pool } = product.environment.database;
  const forget =
    'UPDATE idempotency_keys SET response_status = NULL, response_body = NULL, claimed_at = ? WHERE object_id = ?';
  await pool.query(forget, [new Date(0), id]);
  const third = await once();
  expect([third.status, await third.json()]).toMatchObject([200, { id, end: { code: 'DESKTOP_DELETED' } }]);
});
