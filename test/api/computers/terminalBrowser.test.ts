import { type Browser, chromium, type Page } from 'playwright-core';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { serveTerminalPage } from '../../builders/terminalPage.ts';
import { getChromium } from '../../support/chromium.ts';

// A terminal as people use it: xterm.js in a real Chromium, on a page of another origin.

declare const connect: (url: string, token: string) => Promise<unknown>;
declare const drop: () => void;
declare const textOf: () => string;
declare const cellOf: (text: string) => Record<string, unknown> | undefined;
declare const term: { resize(cols: number, rows: number): void; input(text: string): void; cols: number; rows: number };
declare const seen: { type: string }[];

let product: TestProduct;
let computer: TestComputer;
let pages: Awaited<ReturnType<typeof serveTerminalPage>>;
let browser: Browser;

beforeAll(async () => {
  const executablePath = await getChromium();
  pages = await serveTerminalPage();
  product = await buildHostingProduct({ ATRIUM_CORS_ORIGINS: pages.url });
  computer = await buildComputer(product);
  // As root, Chromium refuses to use its own sandbox. It only opens pages of this test.
  browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}, 300_000);
afterAll(async () => {
  await browser?.close();
  await product?.close();
  pages?.close();
});

/** A page whose terminal is attached to this process. */
async function open(processId: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(pages.url);
  await attach(page, processId);
  return page;
}

async function attach(page: Page, processId: string): Promise<void> {
  const url = `${product.url.replace('http', 'ws')}${computer.path}/terminal?processId=${processId}`;
  await page.evaluate(([to, token]) => connect(to as string, token as string), [url, computer.user.token]);
}

const shows = (page: Page, text: string) =>
  page.waitForFunction((wanted) => textOf().includes(wanted), text, { timeout: 20_000 });
const type = (page: Page, text: string) => page.evaluate((keys) => term.input(keys), text);

/** A shell with a short prompt. */
async function shell(processId: string): Promise<Page> {
  const page = await open(processId);
  await type(page, "PS1='ready> '; clear\r");
  await page.waitForFunction(() => textOf().startsWith('ready> '));
  return page;
}

test('vim edits a file, with characters of every width', async () => {
  const page = await shell('vim');
  await type(page, 'vim -u NONE -c "set encoding=utf-8" notes.txt\r');
  await shows(page, '~');
  await type(page, 'ihello 日本 ✓ é 😀\u001b');
  await shows(page, 'hello 日本 ✓ é 😀');
  await type(page, ':wq\r');
  await shows(page, 'ready>');
  expect((await computer.exec('cat notes.txt')).stdout).toBe('hello 日本 ✓ é 😀\n');
  await type(page, 'clear; cat notes.txt\r');
  await shows(page, 'hello 日本 ✓ é 😀');
  expect(await page.evaluate(() => cellOf('日'))).toMatchObject({ chars: '日', width: 2 });
  await page.close();
});

test('top draws over the whole screen, and leaves it', async () => {
  const page = await shell('top');
  await type(page, 'top\r');
  await shows(page, 'Tasks:');
  await shows(page, 'PID');
  await type(page, 'q');
  await type(page, 'clear; echo back\r');
  await shows(page, 'back');
  await page.close();
});

test('Colours come through, both palette colours and true colours', async () => {
  const page = await shell('colours');
  await type(page, "clear; printf '\\033[1;31mpal%s\\033[0m \\033[38;2;10;20;30mtru%s\\033[0m\\n' ette ecolour\r");
  await shows(page, 'palette truecolour');
  expect(await page.evaluate(() => cellOf('palette'))).toMatchObject({ fg: 1, isRgb: false, isBold: true });
  expect(await page.evaluate(() => cellOf('truecolour'))).toMatchObject({ fg: 0x0a141e, isRgb: true });
  await page.close();
});

test('The last active writer sets the size, and programs are told', async () => {
  const page = await shell('size');
  await page.evaluate(() => term.resize(100, 30));
  await type(page, 'clear; stty size\r');
  await shows(page, '30 100');
  const other = await open('size');
  expect(await other.evaluate(() => [term.cols, term.rows])).toEqual([100, 30]);
  await other.evaluate(() => term.resize(60, 20));
  await type(other, 'clear; stty size\r');
  await shows(other, '20 60');
  // The first client writes again, so its size holds again.
  await type(page, 'clear; stty size\r');
  await shows(page, '30 100');
  await Promise.all([page.close(), other.close()]);
});

test('two people share a terminal, and a reconnect shows the screen as it was', async () => {
  const [one, two] = [await shell('shared'), await open('shared')];
  await type(one, 'clear; echo from-$((40+1))\r');
  await shows(two, 'from-41');
  await type(two, 'echo from-$((40+2))\r');
  await shows(one, 'from-42');
  await type(one, "clear; printf 'a\\tb\\033[5;10Hthere\\033[31mred\\033[0m'; read\r");
  await shows(one, 'therered');
  const before = await one.evaluate(() => textOf());
  await one.evaluate(() => drop());
  await one.waitForFunction(() => seen.some((message) => message.type === 'closed'));
  // Typed without a connection: sent once, after the reconnect.
  await type(one, '\recho o$(echo n)ce >> typed; cat typed\r');
  await shows(two, 'therered');
  const third = await open('shared');
  expect(await third.evaluate(() => textOf())).toBe(before);
  expect(await third.evaluate(() => cellOf('red'))).toMatchObject({ fg: 1 });
  await attach(one, 'shared');
  await shows(one, 'once');
  expect((await computer.exec('cat typed')).stdout).toBe('once\n');
  await Promise.all([one, two, third].map((page) => page.close()));
});
