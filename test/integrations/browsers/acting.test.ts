import type { Browser } from '../../../integrations/browsers/browser.ts';
import { buildBrowserComputer } from '../../builders/browsers.ts';

let built: Awaited<ReturnType<typeof buildBrowserComputer>>;
let browser: Browser;
let id: string;
let text: string;

beforeAll(async () => {
  built = await buildBrowserComputer();
  browser = built.browser();
  await browser.start(AbortSignal.timeout(60_000));
  id = (await browser.tabs())[0]?.id ?? '';
}, 300_000);
afterAll(() => built?.[Symbol.asyncDispose]());

async function open(path: string): Promise<void> {
  await browser.navigate(id, { url: `${built.site}${path}` });
  await read();
}

async function read(): Promise<string> {
  ({ text } = await browser.read(id));
  return text;
}

/** The reference of the element with this name. */
function ref(name: string): string {
  const found = new RegExp(`\\[(\\w+)\\] [^"\\n]*"${name}"`).exec(text)?.[1];
  if (found === undefined) throw new Error(`There is no ${name} in:\n${text}`);
  return found;
}

const at = (name: string) => ({ ref: ref(name) });

describe('a page as text', () => {
  test('has the content, and references for elements that can be acted on', async () => {
    await open('/form');
    expect(text.replace(/\[[a-z]{3}\d+\]/g, '[ref]')).toBe(
      [
        'navigation "Main"',
        `  [ref] link "Second page" to ${built.site}/second`,
        'main',
        '  heading "Order" level=1',
        '  Fill in all of it.',
        '  form',
        '    [ref] textbox "Name" value "old" required',
        '    [ref] textbox "Notes"',
        '    [ref] combobox "Size" value "Small" expanded=false',
        '      option "Small" selected',
        '      option "Large"',
        '    [ref] date field "Day"',
        '    [ref] checkbox "Fast" checked=false',
        '    [ref] textbox "Secret" value "••••••"',
        '    [ref] button "Send"',
        '    [ref] button "Never" disabled',
        '  [ref] textbox "Editor" value "draft"',
        '  status',
        '  One | Two',
        '  [ref] button "In the shadow"',
        '  frame "Inner"',
        '    [ref] button "Inside"',
        '  frame "Elsewhere"',
        '    [ref] button "Elsewhere too"',
        '  [ref] button "Low"',
        '  [ref] button "Under"',
      ].join('\n'),
    );
  });

  test('keeps its references when the page is read again, and has new ones for a new document', async () => {
    await open('/form');
    const send = ref('Send');
    await read();
    expect(ref('Send')).toBe(send);
    await open('/form');
    expect(ref('Send').slice(0, 3)).not.toBe(send.slice(0, 3));
  });

  test('is cut at the maximal length', async () => {
    await open('/form');
    const short = await browser.read(id, { maxLength: 100 });
    expect(short.isCut).toBe(true);
    expect(short.text.length).toBeLessThanOrEqual(100);
    expect(text.startsWith(short.text)).toBe(true);
  });
});

describe('acting', () => {
  test('fills in a form and sends it', async () => {
    await open('/form');
    await browser.act(id, { kind: 'type', ref: ref('Name'), text: 'Ada Löve!' });
    await browser.act(id, { kind: 'type', ref: ref('Notes'), text: 'one\ntwo' });
    await browser.act(id, { kind: 'select', ref: ref('Size'), values: ['Large'] });
    await browser.act(id, { kind: 'type', ref: ref('Day'), text: '2030-12-31' });
    await browser.act(id, { kind: 'click', at: at('Fast') });
    await browser.act(id, { kind: 'click', at: at('Send') });
    const sent = { name: 'Ada Löve!', notes: 'one\ntwo', size: 'l', day: '2030-12-31', fast: 'on', secret: 'hidden' };
    expect(await read()).toContain(JSON.stringify(sent));
  });

  test('submits a form by Enter, and presses key chords', async () => {
    await open('/form');
    await browser.act(id, { kind: 'type', ref: ref('Name'), text: 'first' });
    await browser.act(id, { kind: 'press', keys: 'ctrl+a' });
    await browser.act(id, { kind: 'press', keys: 'X' });
    expect(await read()).toContain('textbox "Name" value "X"');
    await browser.act(id, { kind: 'type', ref: ref('Name'), text: 'y'.repeat(600), isSubmitted: true });
    expect(await read()).toContain(`"name":"${'y'.repeat(600)}"`);
    await browser.act(id, { kind: 'type', ref: ref('Name'), text: '' });
    await browser.act(id, { kind: 'type', ref: ref('Editor'), text: 'anew' });
    expect(await read()).toMatch(/textbox "Name" required\n[\s\S]*textbox "Editor" value "anew"/);
  });

  test('clicks in shadow trees and iframes by trusted events', async () => {
    await open('/form');
    await browser.act(id, { kind: 'click', at: at('In the shadow') });
    expect(await read()).toContain('shadow true');
    expect(await browser.act(id, { kind: 'click', at: at('Inside') })).toMatchObject({ title: 'true' });
    await browser.act(id, { kind: 'click', at: at('Elsewhere too') });
    expect(await read()).toContain('button "Pressed true"');
  });

  test('scrolls to an element before a click, and by a distance', async () => {
    await open('/form');
    await browser.act(id, { kind: 'click', at: at('Low') });
    expect(await read()).toContain('    low');
    await open('/second');
    const before = await browser.shown(id);
    await browser.act(id, { kind: 'scroll', deltaY: 400 });
    await browser.act(id, { kind: 'wait', until: { ms: 200 } });
    expect((await browser.shown(id)).png.equals(before.png)).toBe(false);
  });

  test('follows a link by its reference and by a point on the page', async () => {
    await open('/form');
    expect(await browser.act(id, { kind: 'click', at: at('Second page') })).toMatchObject({
      url: `${built.site}/second`,
      title: 'Second',
      status: 'complete',
    });
    await browser.navigate(id, { action: 'back' });
    expect(await browser.act(id, { kind: 'click', at: { x: 20, y: 15 } })).toMatchObject({ title: 'Second' });
  });

  test('returns the tabs that a click opened', async () => {
    await open(`/popup?to=${encodeURIComponent(`${built.site}/second`)}`);
    const { opened } = await browser.act(id, { kind: 'click', at: at('Open') });
    expect(opened).toHaveLength(1);
    await browser.act(opened[0]?.id ?? '', { kind: 'wait', until: { text: 'Long' } });
    expect((await browser.tabs()).map(({ title }) => title).sort()).toEqual(['Opener', 'Second']);
    await browser.closeTab(opened[0]?.id ?? '');
  });

  test.each(['file:///etc/passwd', 'chrome://version', 'view-source:http://localhost:8000/'])(
    'opens no popup that shows %s',
    async (url) => {
      await open(`/popup?to=${encodeURIComponent(url)}`);
      await browser.act(id, { kind: 'click', at: at('Open') });
      for (const tab of await browser.tabs()) {
        expect(tab.url).not.toMatch(/^(file|chrome|view-source):/);
        if (tab.id !== id) await browser.closeTab(tab.id);
      }
    },
  );

  test('waits for a text or an address, and fails with NOT_SEEN after the timeout', async () => {
    await open('/later');
    await browser.act(id, { kind: 'wait', until: { text: 'It is here' } });
    await browser.act(id, { kind: 'wait', until: { url: '#later' } });
    await expect(browser.act(id, { kind: 'wait', until: { text: 'Never' }, timeoutMs: 300 })).rejects.toMatchObject({
      kind: 'upstreamTimeout',
      code: 'NOT_SEEN',
    });
  });

  test('is refused if the element does not support the action', async () => {
    await open('/form');
    const refused = { kind: 'unprocessable', code: 'ACTION_REFUSED' };
    await expect(browser.act(id, { kind: 'type', ref: ref('Send'), text: 'x' })).rejects.toMatchObject(refused);
    await expect(browser.act(id, { kind: 'type', ref: ref('Day'), text: 'soon' })).rejects.toMatchObject(refused);
    await expect(browser.act(id, { kind: 'select', ref: ref('Name'), values: ['x'] })).rejects.toMatchObject(refused);
    await expect(browser.act(id, { kind: 'select', ref: ref('Size'), values: ['Huge'] })).rejects.toMatchObject(
      refused,
    );
    await expect(browser.act(id, { kind: 'press', keys: 'Nothing' })).rejects.toMatchObject(refused);
  });

  test('is refused for an element that is gone, hidden or covered', async () => {
    await open('/form');
    const send = ref('Send');
    await expect(browser.act(id, { kind: 'click', at: { ref: 'e1' } })).rejects.toMatchObject({ code: 'ELEMENT_GONE' });
    await open('/form?covered');
    await expect(browser.act(id, { kind: 'click', at: { ref: send } })).rejects.toMatchObject({ code: 'ELEMENT_GONE' });
    await expect(browser.act(id, { kind: 'click', at: at('Send') })).rejects.toMatchObject({
      kind: 'conflict',
      code: 'ELEMENT_COVERED',
      message: 'A <div> lies over this element. Close it, or scroll.',
    });
    await open('/form?named');
    await expect(browser.act(id, { kind: 'click', at: at('Send') })).rejects.toMatchObject({
      code: 'ELEMENT_COVERED',
      message: 'Something lies over this element. Close it, or scroll.',
    });
    await open('/hiding');
    const away = ref('Away');
    await browser.act(id, { kind: 'click', at: at('Hide') });
    await expect(browser.act(id, { kind: 'click', at: { ref: away } })).rejects.toMatchObject({
      code: 'ELEMENT_NOT_VISIBLE',
    });
    await browser.act(id, { kind: 'click', at: at('Remove') });
    await expect(browser.act(id, { kind: 'click', at: { ref: away } })).rejects.toMatchObject({ code: 'ELEMENT_GONE' });
  });
});

describe('dialogs', () => {
  test('are dismissed and reported, or accepted on request', async () => {
    const dismissed = await browser.navigate(id, { url: `${built.site}/dialogs` });
    expect(dismissed.title).toBe('false,');
    expect(dismissed.dialogs).toEqual([
      { kind: 'alert', message: 'Hello', answer: 'dismissed' },
      { kind: 'confirm', message: 'Sure?', answer: 'dismissed' },
      { kind: 'prompt', message: 'Name?', answer: 'dismissed' },
    ]);
    const accepted = await browser.navigate(id, { action: 'reload' }, { dialogs: { accept: true, text: 'Ada' } });
    expect(accepted.title).toBe('true,Ada');
  });

  test('that open between calls do not block the page', async () => {
    await browser.navigate(id, { url: `${built.site}/later-dialog` });
    for (;;) if ((await browser.tabs())[0]?.title === 'shown') break;
    expect((await browser.read(id)).tab.title).toBe('answered false');
  });

  test('do not prevent leaving or closing a page', async () => {
    const tab = await browser.openTab(`${built.site}/leaving`);
    await browser.act(tab.id, { kind: 'click', at: { x: 50, y: 50 } });
    expect(await browser.navigate(tab.id, { url: `${built.site}/` })).toMatchObject({
      title: 'Home',
      dialogs: [{ kind: 'beforeunload', answer: 'accepted' }],
    });
    await browser.navigate(tab.id, { url: `${built.site}/leaving` });
    await browser.act(tab.id, { kind: 'click', at: { x: 50, y: 50 } });
    await browser.closeTab(tab.id);
  });
});

test('a screenshot has the size of the window or of the full page', async () => {
  await open('/second');
  const sizeOf = (png: Buffer) => [png.readUInt32BE(16), png.readUInt32BE(20)];
  expect(sizeOf(await browser.screenshot(id))).toEqual([1_280, 800]);
  const [width = 0, height = 0] = sizeOf(await browser.screenshot(id, { isFullPage: true }));
  expect([width, height > 5_000]).toEqual([1_280, true]);
  expect(await browser.shown(id)).toMatchObject({ width: 1_280, height: 800, viewport: { width: 1_280, height: 800 } });
  expect((await browser.pdf(id)).toString('latin1', 0, 5)).toBe('%PDF-');
});
