import { buildBrowserComputer } from '../../builders/browsers.ts';
import { runOn } from '../../builders/host.ts';

let built: Awaited<ReturnType<typeof buildBrowserComputer>>;
const soon = () => AbortSignal.timeout(60_000);
const profileFolder = 'profiles/kept';

beforeAll(async () => {
  built = await buildBrowserComputer();
}, 300_000);
afterAll(() => built?.[Symbol.asyncDispose]());

async function open(id: string) {
  const browser = built.browser({ id, profileFolder });
  await browser.start(soon());
  return { browser, tab: (await browser.tabs())[0]?.id ?? '' };
}

test('a login survives from one session to the next', async () => {
  const { browser, tab } = await open('bss_first');
  expect(await browser.navigate(tab, { url: `${built.site}/who` })).toMatchObject({ title: 'nobody null' });
  await browser.navigate(tab, { url: `${built.site}/login` });
  await browser.close(soon());
  const next = await open('bss_second');
  expect(await next.browser.navigate(next.tab, { url: `${built.site}/who` })).toMatchObject({ title: 'who=ada dark' });
  await next.browser.close(soon());
});

test('a profile survives kill -9, and also opens if its lock names another computer', async () => {
  const { browser, tab } = await open('bss_third');
  await browser.navigate(tab, { url: `${built.site}/who` });
  await built.client.own.signalProcess('bss_third', 'SIGKILL');
  for (;;) if (!(await browser.isAlive())) break;
  // A Chromium that was killed on another computer leaves such a lock.
  await runOn(built.client, `cd ${profileFolder} && ln -sfn elsewhere-1 SingletonLock && ls -a`);
  const next = await open('bss_fourth');
  expect(await next.browser.navigate(next.tab, { url: `${built.site}/who` })).toMatchObject({ title: 'who=ada dark' });
  await next.browser.close(soon());
});
