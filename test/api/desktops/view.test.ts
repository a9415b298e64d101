import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { recordingsOf, savedBytes } from '../../builders/recording.ts';
import { getChromium } from '../../support/chromium.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { readPng } from '../../support/png.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('desktops');

// The page of a desktop as people use it: noVNC in a real Chromium, on an origin of its own.

declare const document: {
  querySelector(name: string): {
    getContext(kind: '2d'): {
      getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray };
    };
  } | null;
  documentElement: { scrollWidth: number };
};
declare const location: { host: string };
declare const innerWidth: number;

interface Session {
  id: string;
  display: string;
  viewUrl: string | null;
  expiresAt: string | null;
}

interface Link {
  id: string;
  url: string;
  expiresAt: string;
}

interface VideoElement {
  src: string;
  duration: number;
  currentTime: number;
  videoWidth: number;
  videoHeight: number;
  error: { message: string } | null;
  play(): Promise<void>;
  addEventListener(event: string, listener: () => void, options: { once: true }): void;
}

/** Runs in a page: plays a video to its end, and then seeks to its third second. */
async function playVideo(base64: string) {
  const video = document.querySelector('video') as unknown as VideoElement;
  const until = (event: string) =>
    new Promise<void>((resolve) => {
      video.addEventListener(event, resolve, { once: true });
      video.addEventListener('error', resolve, { once: true });
    });
  const ended = until('ended');
  video.src = `data:video/mp4;base64,${base64}`;
  await video.play().catch(() => undefined);
  await ended;
  const sought = until('seeked');
  video.currentTime = 2;
  await sought;
  const { duration, currentTime: at, videoWidth: width, videoHeight: height } = video;
  return { duration, at, width, height, error: video.error?.message ?? '' };
}

const sessions = '/desktop/sessions';
let product: TestProduct;
let browser: Browser;

beforeAll(async () => {
  await getDesktopPrograms();
  const executablePath = await getChromium();
  product = await buildHostingProduct({ ATRIUM_PUBLIC_URL: 'http://localhost' });
  // As root, Chromium refuses to use its own sandbox. It only opens pages of this test.
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  // The product listens on a free port, but its public addresses are those of an operator, without a port.
  args.push(`--host-resolver-rules=MAP desktop.localhost 127.0.0.1:${new URL(product.url).port}`);
  browser = await chromium.launch({ executablePath, args });
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await product?.close();
});

const start = (computer: TestComputer) => computer.expect<Session>(200, 'POST', sessions, { resolution: '800x600' });
const linkTo = (computer: TestComputer, { id }: Session, body: object) =>
  computer.expect<Link>(201, 'POST', `${sessions}/${id}/link`, body);

async function open(url: string, context?: BrowserContext): Promise<Page> {
  const page = await (context ?? browser).newPage();
  await page.goto(url);
  return page;
}

const says = (page: Page, text: string) => page.locator('#state', { hasText: text }).waitFor({ timeout: 60_000 });
const overSays = (page: Page, text: string) => page.locator('#over', { hasText: text }).waitFor({ timeout: 60_000 });

/** The colour of a pixel of the desktop, as the page shows it. */
const shownAt = (page: Page, x: number, y: number) =>
  page.evaluate(
    ([left, top]) => {
      const canvas = document.querySelector('#screen canvas');
      const data = canvas?.getContext('2d').getImageData(left as number, top as number, 1, 1).data;
      return data === undefined ? [] : [...data.slice(0, 3)];
    },
    [x, y],
  );

const shows = (page: Page, x: number, y: number, colour: number[]) =>
  waitFor(`${colour} at ${x},${y}`, async () => {
    const [red = 0, green = 0, blue = 0] = await shownAt(page, x, y);
    // JPEG of medium quality is not exact.
    return [red, green, blue].every((value, at) => Math.abs(value - (colour[at] as number)) < 12) || undefined;
  });

/** A terminal that covers the screen, whose shell writes its input to a file. */
async function terminal(computer: TestComputer, { display }: Session, file: string): Promise<void> {
  const command = `xterm -bg '#0000c0' -geometry 200x80+0+0 -e sh -c 'cat > ${file}'`;
  await computer.expect(201, 'POST', '/processes', { command, env: { DISPLAY: display } });
}

const read = async (computer: TestComputer, file: string) => (await computer.exec(`cat ${file} 2>/dev/null`)).stdout;

/** Types a line into the desktop, after a click into it. */
async function type(page: Page, text: string): Promise<void> {
  await page.locator('#screen canvas').click({ position: { x: 200, y: 200 } });
  await page.keyboard.type(`${text}\n`);
}

describe('the page of a desktop', () => {
  let computer: TestComputer;
  let session: Session;
  beforeAll(async () => {
    computer = await buildComputer(product);
    session = await start(computer);
    await terminal(computer, session, 'heard');
  });

  test('The page shows the desktop, and types into a window for the viewer in control', async () => {
    const { url } = await linkTo(computer, session, { control: true });
    const page = await open(url);
    await says(page, 'You are in control');
    await shows(page, 300, 300, [0, 0, 0xc0]);
    await type(page, 'hello from the page');
    await waitFor('the line', async () => (await read(computer, 'heard')).includes('hello from the page'));
    // The address no longer shows its token, and a reload goes on.
    expect(new URL(page.url()).hash).toBe('');
    await page.reload();
    await says(page, 'You are in control');
    await page.close();
  });

  full.test('The page tells everyone who watches that the desktop is being recorded', async () => {
    const recordings = recordingsOf(computer, session.id);
    const pages = [await open(session.viewUrl ?? ''), await open((await linkTo(computer, session, {})).url)];
    for (const page of pages) {
      await says(page, 'You are watching');
      expect(await page.locator('#recorded').textContent()).toBe('');
    }
    const { id } = await recordings.start();
    for (const page of pages) await page.locator('#recorded', { hasText: 'Recorded' }).waitFor();
    const later = await open(session.viewUrl ?? '');
    await later.locator('#recorded', { hasText: 'Recorded' }).waitFor();
    await recordings.stop(id);
    for (const page of [...pages, later]) {
      await page.locator('#recorded:empty').waitFor({ state: 'attached' });
      await page.close();
    }
  });

  full.test('A browser can play a recording, and seek in it', async () => {
    const recordings = recordingsOf(computer, session.id);
    const { id } = await recordings.start();
    await waitFor('three seconds of the recording', async () => {
      const { stdout } = await computer.exec(
        `ffprobe -v error -show_entries format=duration -of csv=p=0 .atrium/recordings/${id}.part.mp4`,
      );
      return Number(stdout) > 3 || undefined;
    });
    const bytes = await savedBytes(computer, await recordings.stop(id));
    const page = await browser.newPage();
    await page.setContent('<video muted></video>');
    const played = await page.evaluate(playVideo, bytes.toString('base64'));
    expect(played).toMatchObject({ width: 800, height: 600, at: 2, error: '' });
    expect(played.duration).toBeGreaterThan(3);
    await page.close();
  });

  test('The page is on an origin that has nothing of the API', async () => {
    expect(session.viewUrl).toMatch(/^http:\/\/desktop\.localhost\/#/);
    const page = await open(session.viewUrl ?? '');
    await says(page, 'You are watching');
    expect(await page.context().cookies()).toEqual([]);
    expect(new URL(page.url()).origin).not.toBe(new URL(product.url).origin);
    const status = await page.evaluate(async () => (await fetch('/api/me')).status);
    expect(status).toBe(404);
    // Pages of other origins cannot have it in a frame, under something else to click on.
    const policy = (await page.reload())?.headers()['content-security-policy'];
    expect(policy).toMatch(/; frame-ancestors http:\/\/localhost(;|$| http:\/\/localhost:\*)/);
    await page.close();
  });

  test('A viewer with a read-only link types nothing, whatever the page sends', async () => {
    const page = await open(session.viewUrl ?? '');
    await says(page, 'You are watching');
    await shows(page, 300, 300, [0, 0, 0xc0]);
    await page.evaluate(async () => {
      // As a modified viewer: it greets, and then types, moves, pastes and resizes.
      const token = sessionStorage.getItem('token');
      const socket = new WebSocket(`ws://${location.host}/socket`, ['atrium', `bearer.${token}`]);
      socket.binaryType = 'arraybuffer';
      await new Promise((resolve) => {
        socket.onopen = resolve;
      });
      const key = (down: number) => [4, down, 0, 0, 0, 0, 0, 0x58];
      socket.send(new TextEncoder().encode('RFB 003.008\n'));
      socket.send(new Uint8Array([1, 1]));
      socket.send(JSON.stringify({ type: 'take' }));
      socket.send(new Uint8Array([...key(1), ...key(0), 5, 1, 1, 0, 1, 0, 5, 0, 1, 0, 1, 0]));
      socket.send(new Uint8Array([255, 0, 0, 1, 0, 0, 0, 0x58, 0, 0, 0, 0x2d]));
      socket.send(new Uint8Array([6, 0, 0, 0, 0, 0, 0, 1, 0x58]));
      socket.send(new Uint8Array([251, 0, 4, 0, 4, 0, 1, 0, ...new Array(8).fill(0), 4, 0, 4, 0, 0, 0, 0, 0]));
      // When a picture comes, the server has read all of that.
      const picture = new Promise((resolve) => {
        socket.onmessage = ({ data }) => data instanceof ArrayBuffer && data.byteLength > 1_000 && resolve(undefined);
      });
      socket.send(new Uint8Array([3, 0, 0, 0, 0, 0, 0, 200, 0, 200]));
      await picture;
      socket.close();
    });
    const controlling = await open((await linkTo(computer, session, { control: true })).url);
    await says(controlling, 'You are in control');
    await type(controlling, 'only me');
    const heard = await waitFor('the line', async () => {
      const text = await read(computer, 'heard');
      return text.includes('only me') ? text : undefined;
    });
    expect(heard).not.toContain('X');
    expect(await computer.expect(200, 'GET', `${sessions}/${session.id}`)).toMatchObject({ resolution: '800x600' });
    await Promise.all([page.close(), controlling.close()]);
  });

  test('One viewer is in control at a time, and people and the API can take over', async () => {
    const { url } = await linkTo(computer, session, { control: true });
    const one = await open(url);
    await says(one, 'You are in control');
    const two = await open(url, await browser.newContext());
    await says(two, 'Another person is in control');
    await type(two, 'not yet');
    await two.locator('#take').click();
    await says(two, 'You are in control');
    await says(one, 'Another person is in control');
    await type(one, 'not any more');
    await type(two, 'now it is me');
    const heard = await waitFor('the line', async () => {
      const text = await read(computer, 'heard');
      return text.includes('now it is me') ? text : undefined;
    });
    expect(heard).not.toMatch(/not (yet|any more)/);
    const control = (action: string) =>
      computer.expect<{ controller: string }>(200, 'POST', `${sessions}/${session.id}/control`, { action });
    expect(await control('take')).toEqual({ controller: 'you' });
    await says(two, 'Another person is in control');
    expect(await control('release')).toEqual({ controller: 'none' });
    await says(two, 'No one is in control');
    await Promise.all([one.close(), two.context().close()]);
  });

  test('The clipboard works in both directions', async () => {
    const page = await open((await linkTo(computer, session, { control: true })).url);
    await says(page, 'You are in control');
    await page.locator('#clipboard').click();
    await page.locator('#text').fill('from the page: é ✓');
    await page.locator('#send').click();
    const { display } = session;
    await waitFor('the text inside', async () => {
      const { stdout } = await computer.exec(`timeout 5 xclip -display ${display} -selection clipboard -o`);
      return stdout === 'from the page: é ✓';
    });
    await computer.exec(`printf 'from inside: ü' | xclip -display ${display} -selection clipboard`);
    await waitFor('the text in the page', async () => (await page.locator('#text').inputValue()) === 'from inside: ü');
    await page.close();
  });

  test('A viewer with a read-only link gets nothing of the clipboard, whatever the page asks for', async () => {
    const looking = await open(session.viewUrl ?? '');
    await says(looking, 'You are watching');
    const controlling = await open((await linkTo(computer, session, { control: true })).url);
    await says(controlling, 'You are in control');
    // Two modified viewers: one names no encodings, and would get plain texts. The other asks for the extended
    // clipboard, and for texts of any length in it.
    await looking.evaluate(async () => {
      const token = sessionStorage.getItem('token');
      const listen = async (...more: number[][]) => {
        const socket = new WebSocket(`ws://${location.host}/socket`, ['atrium', `bearer.${token}`]);
        socket.binaryType = 'arraybuffer';
        await new Promise((resolve) => {
          socket.onopen = resolve;
        });
        const viewer = { socket, heard: '' };
        socket.onmessage = ({ data }) => {
          if (data instanceof ArrayBuffer) viewer.heard += new TextDecoder('latin1').decode(data);
        };
        socket.send(new TextEncoder().encode('RFB 003.008\n'));
        socket.send(new Uint8Array([1, 1]));
        for (const message of more) socket.send(new Uint8Array(message));
        return viewer;
      };
      const encodings = [2, 0, 0, 2, 0, 0, 0, 0, 0xc0, 0xa1, 0xe5, 0xce];
      const wishes = [6, 0, 0, 0, 0xff, 0xff, 0xff, 0xf8, 0x1f, 0, 0, 1, 1, 0, 0, 0];
      Object.assign(globalThis, { viewers: [await listen(), await listen(encodings, wishes)] });
    });
    const { display } = session;
    await computer.exec(`printf 'only for who types' | xclip -display ${display} -selection clipboard`);
    await waitFor('the text', async () => (await controlling.locator('#text').inputValue()) === 'only for who types');
    const heard = await looking.evaluate(async () => {
      const { viewers } = globalThis as unknown as { viewers: { socket: WebSocket; heard: string }[] };
      const answers = viewers.map(async (viewer) => {
        const { socket } = viewer;
        const before = viewer.heard.length;
        // Everything that was sent before the picture has come when the picture has.
        const picture = new Promise((resolve) => {
          socket.addEventListener('message', () => viewer.heard.length - before > 10_000 && resolve(undefined));
        });
        socket.send(new Uint8Array([3, 0, 0, 0, 0, 0, 0, 64, 0, 64]));
        await picture;
        socket.close();
        return viewer.heard.slice(0, before);
      });
      return Promise.all(answers);
    });
    for (const said of heard) {
      expect(said).toContain('RFB 003.008');
      expect(said).not.toContain('only for who types');
      // The beginning of a text of the extended clipboard.
      expect(said).not.toContain(String.fromCharCode(0x10, 0, 0, 1));
    }
    await Promise.all([looking.close(), controlling.close()]);
  });

  full.test('The page fits a phone, and takes input from its keyboard', async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const page = await open((await linkTo(computer, session, { control: true })).url, context);
    await says(page, 'You are in control');
    const fits = () => document.documentElement.scrollWidth <= innerWidth;
    expect(await page.evaluate(fits)).toBe(true);
    const box = await page.locator('#screen canvas').boundingBox();
    expect(box?.width).toBeLessThanOrEqual(390);
    // All buttons are in one row, so the picture has the remaining room.
    expect((await page.locator('header').boundingBox())?.height).toBeLessThan(90);
    // A picture that is too small to read can be shown in real size, and moved with a finger.
    await page.locator('#zoom', { hasText: 'Real size' }).tap();
    expect((await page.locator('#screen canvas').boundingBox())?.width).toBe(390);
    expect(await page.locator('#move').getAttribute('aria-pressed')).toBe('true');
    await shows(page, 200, 300, [0, 0, 0xc0]);
    await page.locator('#zoom', { hasText: 'Show all' }).tap();
    await page.locator('#move').waitFor({ state: 'hidden' });
    await page.locator('#screen canvas').tap();
    await page.locator('#keyboard').tap();
    // As keyboards of phones do, which send no key events.
    await page.locator('#keys').evaluate((element) => {
      const field = element as unknown as { value: string; dispatchEvent(event: Event): void };
      field.value = 'by phone\n';
      field.dispatchEvent(new Event('input'));
    });
    await waitFor('the line', async () => (await read(computer, 'heard')).includes('by phone'));
    await page.locator('#quality').selectOption('low');
    await shows(page, 300, 300, [0, 0, 0xc0]);
    await context.close();
  });

  test('The page is closed when its link is revoked, and says so', async () => {
    const { id, url } = await linkTo(computer, session, {});
    const page = await open(url);
    await says(page, 'You are watching');
    await computer.expect(204, 'DELETE', `${sessions}/${session.id}/link/${id}`);
    await overSays(page, 'expired or was revoked');
    const again = await open(url, await browser.newContext());
    await overSays(again, 'expired or was revoked');
    await computer.expect(204, 'DELETE', `${sessions}/${session.id}/link/${id}`);
    await Promise.all([page.close(), again.context().close()]);
  });

  full.test('The page is closed to an expired and to an invalid link, and says why', async () => {
    const { id, url } = await linkTo(computer, session, { ttlSeconds: 600 });
    const { pool } = product.environment.database;
    await pool.query('UPDATE desktop_links SET expires_at = NOW() - INTERVAL 1 DAY WHERE id = ?', [id]);
    const none = 'is wrong or no longer valid';
    for (const [address, why] of [
      [url, 'expired or was revoked'],
      [`${url}x`, none],
      [url.replace(/#.*/, '#a.b.c'), none],
      [`${url.replace(/#.*/, '#')}${computer.user.token}`, none],
    ] as const) {
      const page = await open(address, await browser.newContext());
      await overSays(page, why);
      await page.context().close();
    }
    const page = await open(url.replace(/#.*/, ''), await browser.newContext());
    await overSays(page, 'not complete');
    await page.context().close();
  });

  full.test('A link lives on while its page is open, and the page gets a new token to reconnect with', async () => {
    const { id, url } = await linkTo(computer, session, { ttlSeconds: 20 });
    const page = await open(url);
    await says(page, 'You are watching');
    const first = await page.evaluate(() => sessionStorage.getItem('token'));
    await page.waitForFunction((old) => sessionStorage.getItem('token') !== old, first, { timeout: 60_000 });
    const { pool } = product.environment.database;
    const [rows] = await pool.query(
      'SELECT TIMESTAMPDIFF(SECOND, created_at, expires_at) AS s FROM desktop_links WHERE id = ?',
      [id],
    );
    expect((rows as { s: number }[])[0]?.s).toBeGreaterThan(22);
    await page.reload();
    await says(page, 'You are watching');
    await page.close();
  });

  test('404 for another tenant who makes or revokes links, or takes control', async () => {
    const stranger = await product.user();
    const path = `${computer.path}${sessions}/${session.id}`;
    for (const rest of ['/link', '/control']) {
      const body = rest === '/link' ? {} : { action: 'take' };
      expect((await stranger.fetch(path + rest, { method: 'POST', body })).status).toBe(404);
    }
    const { id } = await linkTo(computer, session, {});
    expect((await stranger.fetch(`${path}/link/${id}`, { method: 'DELETE' })).status).toBe(404);
  });

  test('The page says that the session has ended, and why', async () => {
    const other = await start(computer);
    const page = await open((await linkTo(computer, other, { control: true })).url);
    await says(page, 'You are in control');
    await computer.exec(`kill -9 $(cat /tmp/.X${other.display.slice(1)}-lock)`);
    await overSays(page, 'The X server of the session has exited by itself.');
    // Nothing looks as if the session went on.
    for (const part of ['#take', '#quality', '#whole']) expect(await page.locator(part).isVisible()).toBe(false);
    expect(await page.locator('canvas').count()).toBe(0);
    const third = await start(computer);
    await page.goto('about:blank');
    await page.goto(third.viewUrl ?? '');
    await says(page, 'You are watching');
    await computer.expect(200, 'POST', '/stop');
    await overSays(page, 'Its computer has stopped.');
    const ended = await computer.expect<Session>(200, 'GET', `${sessions}/${third.id}`);
    expect([ended.viewUrl, ended.expiresAt]).toEqual([null, null]);
    await computer.expect(410, 'POST', `${sessions}/${third.id}/link`, {});
    await page.close();
  });
});

test('A screenshot shows the same as the page', async () => {
  const computer = await buildComputer(product);
  const session = await start(computer);
  await computer.exec(`xsetroot -display ${session.display} -solid '#c08040'`);
  const page = await open(session.viewUrl ?? '');
  await shows(page, 40, 40, [0xc0, 0x80, 0x40]);
  const response = await computer.fetch(`${sessions}/${session.id}/screenshot`);
  expect(readPng(Buffer.from(await response.arrayBuffer())).at(40, 40)).toEqual([0xc0, 0x80, 0x40]);
  await page.close();
});
