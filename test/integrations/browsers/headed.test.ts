import type { Browser } from '../../../integrations/browsers/browser.ts';
import { Desktop } from '../../../integrations/desktops/desktop.ts';
import { buildBrowserComputer } from '../../builders/browsers.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';

let built: Awaited<ReturnType<typeof buildBrowserComputer>>;
let desktop: Desktop;
let browser: Browser;
let id: string;
const soon = () => AbortSignal.timeout(60_000);

beforeAll(async () => {
  await getDesktopPrograms();
  built = await buildBrowserComputer();
  desktop = new Desktop(built.client, { id: 'dsk_test', display: 10, width: 1_024, height: 768 });
  await desktop.start(soon());
  browser = built.browser({ display: 10, width: 1_024, height: 768 });
  await browser.start(soon());
  id = (await browser.tabs())[0]?.id ?? '';
}, 300_000);
afterAll(() => built?.[Symbol.asyncDispose]());

test("a headed browser's window is on the desktop and shows the tab", async () => {
  const before = await desktop.screenshot();
  await browser.navigate(id, { url: `${built.site}/second` });
  const { viewport } = await browser.shown(id);
  expect(viewport.width).toBeGreaterThan(900);
  expect(viewport.height).toBeLessThan(768);
  for (;;) if (!(await desktop.screenshot()).equals(before)) break;
});

test('a headed browser reads, clicks, prints and takes screenshots like a headless one', async () => {
  await browser.navigate(id, { url: `${built.site}/form` });
  const { text } = await browser.read(id);
  const ref = /\[(\w+)\] button "In the shadow"/.exec(text)?.[1] ?? '';
  await browser.act(id, { kind: 'click', at: { ref } });
  expect((await browser.read(id)).text).toContain('shadow true');
  expect((await browser.pdf(id)).toString('latin1', 0, 5)).toBe('%PDF-');
  expect((await browser.screenshot(id, { isFullPage: true })).readUInt32BE(20)).toBeGreaterThan(3_000);
});

test('a screenshot of a background tab brings the tab to the front', async () => {
  const other = await browser.openTab(`${built.site}/`);
  expect(other.isActive).toBe(true);
  await browser.screenshot(id);
  expect((await browser.tabs()).find((tab) => tab.isActive)?.id).toBe(id);
  await browser.closeTab(other.id);
});

test('a dialog that opens between calls does not block the page', async () => {
  await browser.navigate(id, { url: `${built.site}/later-dialog` });
  for (;;) if ((await browser.tabs())[0]?.title === 'shown') break;
  expect((await browser.read(id)).tab.title).toBe('answered false');
});

test('a headed browser ends with its X server', async () => {
  await desktop.kill();
  for (;;) if (!(await browser.isAlive())) break;
  await expect(browser.tabs()).rejects.toMatchObject({ code: 'BROWSER_ENDED' });
});
