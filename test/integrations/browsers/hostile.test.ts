import { once } from 'node:events';
import type { Browser } from '../../../integrations/browsers/browser.ts';
import { endpointFile } from '../../../integrations/browsers/chromium.ts';
import { agentTasks } from '../../../integrations/computers/host/confinement/computerCgroup.ts';
import { buildBrowserComputer } from '../../builders/browsers.ts';
import { runOn, usualLimits } from '../../builders/host.ts';
import { nodeInside } from '../../support/computerPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('browsers');

// Hostile pages, and programs on the computer that answer in place of Chromium.

let built: Awaited<ReturnType<typeof buildBrowserComputer>>;
let browser: Browser;
let id: string;

beforeAll(async () => {
  built = await buildBrowserComputer();
  browser = built.browser();
  await browser.start(AbortSignal.timeout(60_000));
}, 300_000);
afterAll(() => built?.[Symbol.asyncDispose]());
beforeEach(async () => {
  // A browser that one test has lost must not fail the next test.
  if (!(await browser.isAlive())) await browser.start(AbortSignal.timeout(60_000));
  id = (await browser.openTab('about:blank')).id;
});
afterEach(() => browser.closeTab(id));

const open = (path: string) => browser.navigate(id, { url: `${built.site}${path}` });

describe('a page', () => {
  test('with a title of ten megabytes gets a cut title', async () => {
    const { title } = await open('/long-title');
    expect(title).toMatch(/^x+$/);
    expect(title.length).toBeLessThanOrEqual(1_000);
  });

  full.test('that opens dialogs without end can be left', async () => {
    const { dialogs } = await open('/many-alerts');
    expect(dialogs.length).toBeGreaterThan(1);
    expect(dialogs.length).toBeLessThanOrEqual(20);
    expect(await open('/second')).toMatchObject({ title: 'Second', status: 'complete' });
  });

  test('with a million elements is read in part', async () => {
    await open('/many-nodes');
    const { text, isCut } = await browser.read(id);
    expect(isCut).toBe(true);
    expect(text).toContain('There are many');
  });

  test('that is nested too deeply is read from the top', async () => {
    await open('/deep');
    expect((await browser.read(id)).text).toContain('Above');
  });

  test('with many frames is read up to a limit of frames', async () => {
    await open('/many-frames');
    const { text } = await browser.read(id);
    expect(text).toContain('"Button 0"');
    expect(text).not.toContain('"Button 99"');
  });

  test('in an endless loop does not answer, and can be left', async () => {
    await open('/busy');
    const waits = `await fetch('${built.site}/until-busy')`;
    const command = [nodeInside.to, '--input-type=module', '--eval', waits];
    expect(await runOn(built.client, command)).toMatchObject({ exitCode: 0 });
    const signal = AbortSignal.timeout(5_000);
    await expect(browser.read(id, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    expect((await browser.tabs()).find((tab) => tab.id === id)).toMatchObject({ status: 'loading' });
    expect(await open('/second')).toMatchObject({ title: 'Second' });
  });

  test('with a huge canvas of noise gets a screenshot of bounded size', async () => {
    await open('/noise');
    const png = await browser.screenshot(id, { isFullPage: true });
    expect(png.readUInt32BE(16) * png.readUInt32BE(20)).toBeLessThanOrEqual(3_840 * 2_160);
  });

  full.test('whose site never answers fails with NAVIGATION_TIMEOUT', async () => {
    await expect(open('/never')).rejects.toMatchObject({ kind: 'upstreamTimeout', code: 'NAVIGATION_TIMEOUT' });
    expect(await open('/second')).toMatchObject({ title: 'Second' });
  });

  test('whose process is killed has crashed, and can be reloaded', async () => {
    await open('/second');
    await runOn(built.client, ['pkill', '-9', '-f', '--', '--type=renderer']);
    for (;;) if ((await browser.tabs()).find((tab) => tab.id === id)?.status === 'crashed') break;
    await expect(browser.screenshot(id)).rejects.toMatchObject({ kind: 'conflict', code: 'TAB_CRASHED' });
    await expect(browser.read(id)).rejects.toMatchObject({ code: 'TAB_CRASHED' });
    expect(await browser.navigate(id, { action: 'reload' })).toMatchObject({ title: 'Second', status: 'complete' });
    expect((await browser.screenshot(id)).length).toBeGreaterThan(0);
  });
});

full.test('a page that starts many processes stays within the limit of its computer', async () => {
  const tasks = async () => {
    const { stdout } = await runOn(built.client, ['sh', '-c', 'cat /proc/[0-9]*/task/*/stat 2>/dev/null | wc -l']);
    return Number(stdout);
  };
  const greedy = built.browser();
  await greedy.start(AbortSignal.timeout(60_000));
  const [tab] = await greedy.tabs();
  const signal = AbortSignal.timeout(15_000);
  await greedy.navigate(String(tab?.id), { url: `${built.site}/many-sites` }, { signal }).catch(() => undefined);
  // The computer still runs other commands.
  expect(await tasks()).toBeLessThanOrEqual(built.maxTasks + agentTasks(usualLimits));
  await greedy.close(AbortSignal.timeout(60_000));
  await waitFor("the browser's tasks to end", async () => (await tasks()) < built.maxTasks / 2);
  expect(await open('/second')).toMatchObject({ title: 'Second', status: 'complete' });
});

describe('an attached script', () => {
  /** Attaches to the tab. `send` returns the answer to a command; `heard` waits for an event. */
  async function attachScript() {
    const gone = new AbortController();
    const { socket } = await browser.attach(gone.signal);
    await once(socket, 'open');
    const waiting = new Map<string, (answer: Record<string, unknown>) => void>();
    socket.on('message', (data: Buffer) => {
      const { id, method, ...message } = JSON.parse(data.toString());
      waiting.get(String(id ?? method))?.(message);
    });
    const heard = (key: number | string) =>
      new Promise<Record<string, unknown>>((resolve) => waiting.set(String(key), resolve));
    let count = 0;
    const send = (method: string, params: object = {}, sessionId?: string) => {
      const answer = heard(++count);
      socket.send(JSON.stringify({ id: count, method, params, sessionId }));
      return answer;
    };
    const attached = (await send('Target.attachToTarget', { targetId: id, flatten: true })).result;
    const { sessionId } = attached as { sessionId: string };
    return { heard, socket, send: (method: string, params?: object) => send(method, params, sessionId) };
  }

  test.each(['terminate', 'close'] as const)(
    'pauses a page only as long as it is attached (%s)',
    async (leave) => {
      await open('/second');
      const { heard, send, socket } = await attachScript();
      await send('Debugger.enable');
      const paused = heard('Debugger.paused');
      void send('Runtime.evaluate', { expression: 'setTimeout(() => { debugger; document.title = "On"; })' });
      await paused;
      // A read still shows the paused page.
      expect((await browser.read(id)).tab.title).toBe('Second');
      socket[leave]();
      await waitFor('the page to continue', async () => (await browser.read(id)).tab.title === 'On');
    },
    90_000,
  );

  full.test.each([
    ['its requests', 'Fetch.enable', {}],
    ['its frames', 'Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true }],
    ['its time', 'Emulation.setVirtualTimePolicy', { policy: 'pause' }],
  ])(
    'that stops %s of a page does not block a navigation for ever, and has no effect after it is gone',
    async (_what, method, params) => {
      await open('/second');
      const { send, socket } = await attachScript();
      expect(await send(method, params)).toHaveProperty('result');
      const outcome = await open('/many-frames').then(
        () => 'opened',
        ({ code }: { code: string }) => code,
      );
      expect(['opened', 'NAVIGATION_TIMEOUT', 'BROWSER_NOT_ANSWERING']).toContain(outcome);
      socket.terminate();
      expect(await open('/')).toMatchObject({ title: 'Home', status: 'complete' });
    },
    120_000,
  );
});

describe('a program in place of Chromium', () => {
  async function impostor(kind: string, port = 8_000): Promise<Browser> {
    const profileFolder = `profiles/${kind}-${port}`;
    const endpoint = Buffer.from(`${port}\n/devtools/browser/${kind}`);
    await built.client.writeFile(`${profileFolder}/${endpointFile}`, endpoint, { parents: true });
    return built.browser({ profileFolder });
  }

  test.each(['garbage', 'array', 'wrong', 'deep'])('that sends a malformed answer (%s) is refused', async (kind) => {
    const other = await impostor(kind);
    const wrong = { kind: 'upstream', code: 'BROWSER_ANSWERED_WRONGLY' };
    await expect(other.screenshot('0123')).rejects.toMatchObject(wrong);
    await expect(other.tabs()).rejects.toMatchObject(wrong);
  });

  test.each(['later', 'none'])('that sends a wrong answer to a later command (%s) is refused', async (kind) => {
    const wrong = { kind: 'upstream', code: 'BROWSER_ANSWERED_WRONGLY' };
    await expect((await impostor(kind)).screenshot('0123')).rejects.toMatchObject(wrong);
  });

  test.each([
    ['an upgrade', 8_001, 'BROWSER_ANSWERED_WRONGLY'],
    ['something other than HTTP', 8_002, 'BROWSER_ENDED'],
    ['silence', 8_003, 'BROWSER_ENDED'],
    ['half an answer', 8_004, 'BROWSER_ENDED'],
    ['a list that is too deep', 8_005, 'BROWSER_ANSWERED_WRONGLY'],
  ])('that sends %s for the list of tabs is refused', async (_what, port, code) => {
    await expect((await impostor('later', port)).tabs()).rejects.toMatchObject({ code });
  });

  test('that refuses a command causes an upstream error', async () => {
    await expect((await impostor('refusing')).screenshot('0123')).rejects.toMatchObject({ kind: 'upstream' });
  });

  test('that announces a too large answer is cut off', async () => {
    await expect((await impostor('long')).screenshot('0123')).rejects.toMatchObject({ code: 'PAGE_TOO_LARGE' });
  });

  test('that never answers is waited for until the signal aborts', async () => {
    const signal = AbortSignal.timeout(500);
    await expect((await impostor('silent')).screenshot('0123', { signal })).rejects.toMatchObject({
      name: 'TimeoutError',
    });
  });

  test.each(['', '0\n/devtools/browser/x', 'x'.repeat(100_000), '8000\n/elsewhere', '99999\n/devtools/browser/x'])(
    'whose endpoint file is invalid counts as ended',
    async (endpoint) => {
      const other = await impostor('nowhere');
      await built.client.writeFile(`profiles/nowhere-8000/${endpointFile}`, Buffer.from(endpoint));
      await expect(other.tabs()).rejects.toMatchObject({ code: 'BROWSER_ENDED' });
    },
  );
});
