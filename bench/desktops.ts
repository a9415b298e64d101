import { execFileSync } from 'node:child_process';
import { chromium, type Page } from 'playwright-core';
import { findProgram } from '../stack/context.ts';
import { startAtrium } from './support/atrium.ts';
import { watchPixel } from './support/rfbPixel.ts';
import { quantile, quantiles } from './support/times.ts';

/**
 * Measures the time from a key to its picture: `npx node bench/desktops.ts`, as root. On a desktop's page in Chromium,
 * which draws the whole picture, and in between for one pixel on the socket of the same X server, so that other load on
 * the machine affects both. `KEYS` is the number of keys, 100 by default.
 */
const keys = Number(process.env.KEYS ?? 100);
const out = (line: string) => process.stdout.write(`${line}\n`);

declare const document: {
  querySelector(name: string): {
    dispatchEvent(event: object): void;
    getContext(kind: '2d'): {
      getImageData(x: number, y: number, width: number, height: number): { data: Uint8ClampedArray };
    };
  };
};
declare const KeyboardEvent: new (type: string, options: object) => object;

/** Each key changes the whole window from one colour to another. */
const flips = `n=1; while IFS= read -rsn1 key; do n=$((5 - n)); printf '\\033[4%dm\\033[2J' $n; done`;
const [x, y] = [300, 300];
const space = 0x20;

/** In the page: presses a key and waits until a pixel has changed. */
const pressInPage = (page: Page) =>
  page.evaluate(
    async ([left, top]) => {
      const canvas = document.querySelector('#screen canvas');
      const colour = () =>
        canvas
          .getContext('2d')
          .getImageData(left as number, top as number, 1, 1)
          .data.join();
      const before = colour();
      const begin = performance.now();
      for (const type of ['keydown', 'keyup']) {
        canvas.dispatchEvent(new KeyboardEvent(type, { key: ' ', code: 'Space', bubbles: true, cancelable: true }));
      }
      while (colour() === before) {
        if (performance.now() - begin > 10_000) throw new Error('The key had no picture.');
        await new Promise((resolve) => setTimeout(resolve));
      }
      return performance.now() - begin;
    },
    [x, y],
  );

const executablePath = findProgram('chromium', process.env);
if (executablePath === undefined) throw new Error('This needs Chromium (Debian and Ubuntu: apt-get install chromium).');
const atrium = await startAtrium({
  ATRIUM_LOG_LEVEL: 'warn',
  ATRIUM_RATE_LIMIT_PER_MINUTE: '0',
  // Atrium listens on a free port, but its addresses have no port, as an operator would set them.
  ATRIUM_PUBLIC_URL: 'http://localhost',
});
const { port } = new URL(atrium.url);
// Chromium's own sandbox does not work as root. This browser opens only this page.
const args = ['--no-sandbox', '--disable-gpu', `--host-resolver-rules=MAP *.localhost 127.0.0.1:${port}`];
const browser = await chromium.launch({ executablePath, args });
try {
  const { call } = atrium;
  const { data } = await call<{ data: { id: string }[] }>('GET', '/api/spaces');
  const computers = `/api/spaces/${data[0]?.id}/computers`;
  const { computerId } = await call<{ computerId: string }>('GET', `${computers}/status`);
  const computer = `${computers}/${computerId}`;
  const session = await call<{ id: string; display: string }>('POST', `${computer}/desktop/sessions`, {
    resolution: '1280x800',
  });
  const { url } = await call<{ url: string }>('POST', `${computer}/desktop/sessions/${session.id}/link`, {
    control: true,
  });
  await call('POST', `${computer}/processes`, {
    command: ['xterm', '-geometry', '200x80+0+0', '-e', 'bash', '-c', flips],
    env: { DISPLAY: session.display },
  });
  const page = await browser.newPage();
  await page.goto(url);
  await page.locator('#state', { hasText: 'You are in control' }).waitFor();
  await page.locator('#screen canvas').click({ position: { x, y } });
  // The socket of the X server is in the computer's own /tmp. This is its path on this machine.
  const pid = execFileSync('pgrep', ['-f', `^Xtigervnc .*${session.id}`], { encoding: 'utf8' }).trim();
  const direct = await watchPixel(`/proc/${pid}/root/tmp/.atrium/${session.id}/rfb`, x, y);
  const [throughPage, onSocket]: [number[], number[]] = [[], []];
  // The first key that changes the picture shows that the terminal runs.
  await pressInPage(page);
  for (let n = 0; n < keys; n++) {
    throughPage.push(await pressInPage(page));
    const begin = performance.now();
    await direct.press(space);
    onSocket.push(performance.now() - begin);
    await page.waitForTimeout(50); // lets the page show that key too
  }
  direct.close();
  const ratio = quantile(throughPage, 0.5) / quantile(onSocket, 0.5);
  out(`From a key to its picture, on the page: ${quantiles(throughPage)}`);
  out(`On the socket of the X server: ${quantiles(onSocket)}; the page takes × ${ratio.toFixed(1)}`);
} finally {
  await browser.close();
  await atrium.stop();
}
