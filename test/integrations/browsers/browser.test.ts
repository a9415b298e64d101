import type { Browser } from '../../../integrations/browsers/browser.ts';
import { buildBrowserComputer } from '../../builders/browsers.ts';
import { runOn } from '../../builders/host.ts';

type Built = Awaited<ReturnType<typeof buildBrowserComputer>>;

let built: Built;
let browser: Browser;
const soon = () => AbortSignal.timeout(60_000);

beforeAll(async () => {
  built = await buildBrowserComputer();
  browser = built.browser();
  await browser.start(soon());
}, 300_000);
afterAll(() => built?.[Symbol.asyncDispose]());

async function firstTab(): Promise<string> {
  const [tab] = await browser.tabs();
  return tab?.id ?? '';
}

describe('a session', () => {
  test('starts once, and has an empty tab at first', async () => {
    await browser.start(soon());
    expect(await browser.isAlive()).toBe(true);
    expect(await browser.tabs()).toMatchObject([{ url: 'about:blank', isActive: true, faviconUrl: null }]);
  });

  test.each([
    ['http', '/icon.svg', /^http:\/\/localhost:8000\/icon\.svg$/],
    ['data', 'data:image/png;base64,AAAA', /^data:image\/png;base64,AAAA$/],
    ['too much data', `data:image/png;base64,${'A'.repeat(9_000)}`, undefined],
    ['javascript', 'javascript:alert(1)', undefined],
    ['nothing', '', undefined],
  ])('returns the icon of a page only if it is safe and short: %s', async (_what, href, expected) => {
    const id = await firstTab();
    const { faviconUrl } = await browser.navigate(id, { url: `${built.site}/icon?${encodeURIComponent(href)}` });
    if (expected === undefined) expect(faviconUrl).toBeNull();
    else expect(faviconUrl).toMatch(expected);
    await browser.navigate(id, { url: 'about:blank' });
  });

  test('returns titles unescaped', async () => {
    const title = `Tom & "Jerry's" <b>&amp;</b>`;
    const page = `<title>${title.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</title>`;
    const url = `data:text/html,${encodeURIComponent(page)}`;
    expect(await browser.navigate(await firstTab(), { url })).toMatchObject({ title });
  });

  test('draws letters of many scripts, and emoji in colour', async () => {
    const page = `<canvas></canvas><script>
      const context = document.querySelector('canvas').getContext('2d', { willReadFrequently: true });
      context.font = '40px sans-serif';
      const pixels = (text) => {
        context.clearRect(0, 0, 100, 100);
        context.fillText(text, 10, 60);
        return [...context.getImageData(0, 0, 100, 100).data];
      };
      const isColoured = pixels(String.fromCodePoint(0x1f600)).some((value, at, all) => at % 4 === 0 && value !== all[at + 2]);
      const drawn = [...'\u65e5\u672c\u8a9e\ud55c\uae00\u4f60'].map((letter) => pixels(letter).join());
      document.title = JSON.stringify({ isColoured, different: new Set(drawn).size });
    </script>`;
    const url = `data:text/html;charset=utf-8,${encodeURIComponent(page)}`;
    const { title } = await browser.navigate(await firstTab(), { url });
    // All letters without a font are drawn as the same box.
    expect(JSON.parse(title)).toEqual({ isColoured: true, different: 6 });
  });

  test('refuses a profile that another session uses', async () => {
    const profile = { profileFolder: 'profiles/shared' };
    const [first, second] = [built.browser(profile), built.browser(profile)];
    await first.start(soon());
    await expect(second.start(soon())).rejects.toMatchObject({ kind: 'conflict', code: 'PROFILE_IN_USE' });
    await first.close(soon());
    const third = built.browser(profile);
    await third.start(soon());
    await third.close(soon());
  });

  test('that is closed has no process, and can be closed again', async () => {
    const other = built.browser();
    await other.close(soon());
    await other.start(soon());
    await other.close(soon());
    expect(await other.isAlive()).toBe(false);
    await other.close(soon());
    await expect(other.tabs()).rejects.toMatchObject({ kind: 'upstream', code: 'BROWSER_ENDED' });
    await expect(other.start(soon())).rejects.toMatchObject({ code: 'BROWSER_ENDED' });
  });

  test('that was killed has ended, and its profile can be opened again', async () => {
    const profile = { profileFolder: 'profiles/killed', id: 'bss_killed' };
    const killed = built.browser(profile);
    await killed.start(soon());
    await built.client.own.signalProcess('bss_killed', 'SIGKILL');
    for (;;) if (!(await killed.isAlive())) break;
    await expect(killed.tabs()).rejects.toMatchObject({ code: 'BROWSER_ENDED' });
    const next = built.browser({ ...profile, id: 'bss_next' });
    await next.start(soon());
    expect(await next.tabs()).toHaveLength(1);
    await next.close(soon());
  });

  test('with a profile folder that cannot be written is refused', async () => {
    await built.client.writeFile('not-a-folder', Buffer.from(''));
    await expect(built.browser({ profileFolder: 'not-a-folder' }).start(soon())).rejects.toMatchObject({
      kind: 'unprocessable',
      code: 'PROFILE_UNUSABLE',
    });
  });

  test('is not listed among the processes of its computer', async () => {
    expect((await built.client.listProcesses()).map(({ processId }) => processId)).toEqual(['prc_site']);
  });
});

describe('tabs', () => {
  test('are opened, activated and closed, and the last closed one is replaced', async () => {
    const tab = await browser.openTab(`${built.site}/`);
    expect(tab).toMatchObject({
      url: `${built.site}/`,
      title: 'Home',
      isActive: true,
      status: 'complete',
      dialogs: [],
    });
    const [before] = (await browser.tabs()).filter(({ id }) => id !== tab.id);
    expect(before?.isActive).toBe(false);
    expect(await browser.activateTab(before?.id ?? '')).toMatchObject({ isActive: true });
    await browser.closeTab(before?.id ?? '');
    expect((await browser.tabs()).map(({ id }) => id)).toEqual([tab.id]);
    await browser.closeTab(tab.id);
    expect(await browser.tabs()).toMatchObject([{ url: 'about:blank', isActive: true }]);
  });

  test('that do not exist are not found', async () => {
    const gone = { kind: 'notFound', code: 'TAB_NOT_FOUND' };
    await expect(browser.navigate('0123', { url: built.site })).rejects.toMatchObject(gone);
    await expect(browser.closeTab('0123')).rejects.toMatchObject(gone);
    await expect(browser.screenshot('0123')).rejects.toMatchObject(gone);
  });
});

describe('a tab', () => {
  test('goes to pages, back and forward, and reloads', async () => {
    const id = await firstTab();
    await browser.navigate(id, { url: `${built.site}/` });
    expect(await browser.navigate(id, { url: `${built.site}/to-second` })).toMatchObject({ title: 'Second' });
    expect(await browser.navigate(id, { url: `${built.site}/second#place` })).toMatchObject({
      url: `${built.site}/second#place`,
    });
    expect(await browser.navigate(id, { action: 'back' })).toMatchObject({ url: `${built.site}/second` });
    expect(await browser.navigate(id, { action: 'back' })).toMatchObject({ title: 'Home' });
    expect(await browser.navigate(id, { action: 'forward' })).toMatchObject({ title: 'Second' });
    await expect(
      browser.navigate(id, { action: 'forward' }).then(() => browser.navigate(id, { action: 'forward' })),
    ).rejects.toMatchObject({ kind: 'conflict', code: 'NO_HISTORY' });
    expect(await browser.navigate(id, { url: `${built.site}/visits` })).toMatchObject({ title: '1' });
    expect(await browser.navigate(id, { action: 'reload' })).toMatchObject({ title: '2' });
  });

  test('shows the loaded part of a page that does not end, and can be stopped', async () => {
    const id = await firstTab();
    const half = await browser.navigate(id, { url: `${built.site}/half` });
    expect(half).toMatchObject({ title: 'Half', status: 'loading' });
    await browser.navigate(id, { action: 'stop' });
    expect((await browser.tabs())[0]).toMatchObject({ title: 'Half', status: 'complete' });
  });

  test.each([
    ['where nothing listens', 'http://localhost:9/', 'net::ERR_UNSAFE_PORT'],
    ['where nothing listens at all', 'http://localhost:8999/', 'net::ERR_CONNECTION_REFUSED'],
  ])('fails with the reason for an address %s', async (_name, url, word) => {
    const id = await firstTab();
    await expect(browser.navigate(id, { url })).rejects.toMatchObject({
      kind: 'upstream',
      code: 'NAVIGATION_FAILED',
      message: expect.stringContaining(word),
    });
  });

  test('is closed again if its first address cannot be opened', async () => {
    await firstTab();
    const before = await browser.tabs();
    await expect(browser.openTab('http://localhost:8999/')).rejects.toMatchObject({ code: 'NAVIGATION_FAILED' });
    expect((await browser.tabs()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  });

  test.each([
    'file:///etc/passwd',
    'chrome://version/',
    'view-source:http://localhost:8000/',
    'devtools://devtools/bundled/inspector.html',
    'javascript:alert(1)',
    'no address',
    '/relative',
  ])('refuses to go to %s', async (url) => {
    const refused = { kind: 'unprocessable', code: 'URL_REFUSED' };
    await expect(browser.openTab(url)).rejects.toMatchObject(refused);
    const id = await firstTab();
    await expect(browser.navigate(id, { url })).rejects.toMatchObject(refused);
  });

  test('does not follow a redirect to a file', async () => {
    const id = await firstTab();
    await expect(browser.navigate(id, { url: `${built.site}/to-file` })).rejects.toMatchObject({ code: 'URL_REFUSED' });
    expect((await browser.tabs())[0]?.url).not.toContain('file:');
  });

  test('saves downloads in the folder Downloads', async () => {
    const id = await firstTab();
    await browser.navigate(id, { url: `${built.site}/` });
    expect(await browser.navigate(id, { url: `${built.site}/download` })).toMatchObject({ title: 'Home' });
    const look = 'until [ -e Downloads/report.bin ]; do sleep 0.05; done; cat Downloads/report.bin';
    expect(await runOn(built.client, look)).toMatchObject({ stdout: 'downloaded' });
  });
});
