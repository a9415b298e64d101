import type { operations } from '../../../api/generated/types.gen.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { getDesktopPrograms } from '../../support/desktopPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { type Png, readPng } from '../../support/png.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('desktops');

// The desktop tools of agents, in a running product with a real X server and real windows.

type Timeline = operations['getTurnTimeline']['responses'][200]['content']['application/json'];
type Call = readonly [name: string, input: unknown];

interface Session {
  id: string;
  display: string;
}

let product: TestProduct;
let user: ChatUser;
let computer: TestComputer;
beforeAll(async () => {
  await getDesktopPrograms();
  product = await buildHostingProduct((providerUrl) => ({
    ATRIUM_ANTHROPIC_API_KEY: 'sk-ant-fake',
    ATRIUM_ANTHROPIC_BASE_URL: providerUrl,
  }));
}, 300_000);
beforeEach(async () => {
  user = await product.user();
  computer = await buildComputer(product, user);
});
afterAll(() => product?.close());

/** A tool result in Anthropic's format. */
interface ToolResult {
  type: 'tool_result';
  content: { type: string; text?: string; source?: { media_type: string; data: string } }[];
}

const isResult = (part: unknown): part is ToolResult => (part as { type?: unknown }).type === 'tool_result';

const demo = { modelId: 'demo', mode: 'work' };
const sessions = '/desktop/sessions';

async function run(calls: readonly Call[], more: object = {}) {
  const { chunks, turnId } = await user.ask({ content: toolLines(calls), ...demo, ...more });
  return { outputs: toolOutputs(chunks), turnId };
}

const start = (resolution = '800x600') => computer.expect<Session>(200, 'POST', sessions, { resolution });
const control = (session: Session, action: 'take' | 'release') =>
  computer.expect<{ controller: string }>(200, 'POST', `${sessions}/${session.id}/control`, { action });
const controlsOf = async (turnId: string) =>
  (await user.get<Timeline>(`/chat/turns/${turnId}/timeline`)).toolCalls.map((call) => call.control);

async function screenshot(session: Session): Promise<Png> {
  const response = await computer.fetch(`${sessions}/${session.id}/screenshot`);
  return readPng(Buffer.from(await response.arrayBuffer()));
}

/** Opens a terminal of this colour that writes its input to a file, and waits for the file. */
async function terminal(session: Session, { colour, geometry, file }: Record<'colour' | 'geometry' | 'file', string>) {
  const command = `LC_ALL=C.UTF-8 xterm -u8 -b 0 -bw 0 -bg '${colour}' -geometry ${geometry} -e 'cat > ${file}'`;
  await computer.expect(201, 'POST', '/processes', { command, env: { DISPLAY: session.display } });
  await waitFor('the file', async () => (await computer.exec(`test -e ${file}`)).exitCode === 0 || undefined);
}

const written = (file: string, text: string) =>
  waitFor('the text in the file', async () => (await computer.exec(`cat ${file}`)).stdout === text || undefined);

test('An agent starts a desktop, points at a window, and types into it', async () => {
  const { outputs } = await run([['desktop_start', { resolution: '1920x1080' }]]);
  const [{ sessionId, display }] = outputs as [{ sessionId: string; display: string }];
  expect(display).toBe(':10');
  const session = { id: sessionId, display };
  await terminal(session, { colour: '#0000c0', geometry: '30x8+1500+800', file: 'aimed' });
  // The newest window has the focus.
  await terminal(session, { colour: '#c00000', geometry: '30x8+100+100', file: 'beside' });
  const at = { x: 1_180, y: 640 }; // in pixels of the scaled-down picture, in the window at the lower right
  const done = await run([
    ['desktop_screenshot', {}],
    ['desktop_click', at],
    ['desktop_type', { text: 'Grüße, “€” {a;b}\n' }],
    ['desktop_key', { keys: 'ctrl+d' }],
  ]);
  expect(done.outputs).toMatchObject([
    { sessionId, resolution: '1920x1080', picture: { mediaType: 'image/png', width: 1_429, height: 804 } },
    { sessionId },
    { sessionId, typed: 17 },
    { sessionId },
  ]);
  await written('aimed', 'Grüße, “€” {a;b}\n');
  expect((await computer.exec('cat beside')).stdout).toBe('');
  const held = { surface: 'desktop', sessionId, outcome: 'held', from: expect.any(String), until: expect.any(String) };
  expect(await controlsOf(done.turnId)).toEqual([null, held, held, held]);
});

test('A model that sees images gets the screen with the result of the call', async () => {
  const session = await start();
  await computer.exec(`xsetroot -display ${session.display} -solid '#204060'`);
  const call = { id: 'toolu_1', name: 'desktop_screenshot', arguments: '{}' };
  const content = `fake ${JSON.stringify({ toolCalls: [call] })}`;
  await user.ask({ content, modelId: 'claude-haiku-4-5', mode: 'ask' });
  const messages = product.provider.requests.flatMap(({ body }) => body.messages as { content: unknown }[]);
  const [result] = messages.flatMap(({ content }) => content).filter(isResult);
  const [text, image] = result?.content ?? [];
  expect(JSON.parse(text?.text ?? '')).toMatchObject({ sessionId: session.id, picture: { width: 800, height: 600 } });
  expect(image).toMatchObject({ type: 'image', source: { media_type: 'image/png' } });
  const png = readPng(Buffer.from(image?.source?.data ?? '', 'base64'));
  expect([png.width, png.height, png.at(30, 30)]).toEqual([800, 600, [0x20, 0x40, 0x60]]);
});

full.test('The wheel scrolls, and the mouse drags', async () => {
  const session = await start();
  const command = `xterm -b 0 -bw 0 -sb -rightbar -sl 500 -bg '#00a000' -fg '#00a000' -geometry 120x40+0+0 -e 'printf "\\033[41m%0120d\\033[0m" 0; seq 1 200; touch shown; cat'`;
  await computer.expect(201, 'POST', '/processes', { command, env: { DISPLAY: session.display } });
  await waitFor('the lines', async () => (await computer.exec('test -e shown')).exitCode === 0 || undefined);
  const isRed = async () => {
    const { at } = await screenshot(session);
    for (let y = 0; y < 500; y += 2) {
      const [red, green] = at(300, y);
      if (red > 150 && green < 60) return true;
    }
    return false;
  };
  await waitFor('the window', async () => (await screenshot(session)).at(300, 300)[1] > 100 || undefined);
  expect(await isRed()).toBe(false);
  const { outputs } = await run([['desktop_scroll', { x: 300, y: 300, down: -50 }]]);
  expect(outputs).toEqual([{ sessionId: session.id }]);
  await waitFor('the first line', async () => (await isRed()) || undefined);
  const drawn = await run([['desktop_click', { x: 2, y: 40, dragTo: { x: 400, y: 40 } }]]);
  expect(drawn.outputs).toEqual([{ sessionId: session.id }]);
  const { stdout } = await computer.exec(`xclip -display ${session.display} -out -selection primary`);
  expect(stdout).toMatch(/^\d+\n?$/);
});

full.test('An impossible call does nothing and explains why', async () => {
  const none = await run([['desktop_screenshot', {}]]);
  expect(none.outputs).toEqual(['error: This computer has no desktop. desktop_start starts one.']);
  const session = await start();
  const foreign = await buildComputer(product);
  const theirs = await foreign.expect<Session>(200, 'POST', sessions, { resolution: '800x600' });
  const { outputs, turnId } = await run([
    ['desktop_click', { x: 800, y: 10 }],
    ['desktop_scroll', { x: 10, y: 600, down: 1 }],
    ['desktop_click', { x: 10, y: 10, dragTo: { x: 900, y: 10 } }],
    ['desktop_click', { x: -1, y: 10 }],
    ['desktop_key', { keys: 'F13' }],
    ['desktop_type', { text: 'a\u0007b' }],
    ['desktop_screenshot', { sessionId: theirs.id }],
    ['desktop_type', { sessionId: theirs.id, text: 'x' }],
    ['desktop_screenshot', { computerId: foreign.id }],
    ['desktop_start', { resolution: '10000x10' }],
  ]);
  for (const output of outputs) expect(output).toMatch(/^error: /);
  expect(outputs[0]).toContain('(800, 10) is outside the screen. Its picture is 800 pixels wide and 600 pixels high');
  expect(outputs[4]).toContain('There is no key "F13".');
  expect(outputs[6]).toBe('error: There is no such desktop session.');
  expect((await controlsOf(turnId)).slice(3)).toEqual(Array.from({ length: 7 }, () => null));
  const asked = await run([['desktop_key', { keys: 'x' }]], { mode: 'ask' });
  expect(asked.outputs).toEqual(['error: desktop_key changes things, but this turn is in ask mode and may only read.']);
  await computer.expect(204, 'DELETE', `${sessions}/${session.id}`);
  const over = await run([['desktop_screenshot', { sessionId: session.id }]]);
  expect(over.outputs).toEqual([`error: The desktop ${session.id} has ended. A user ended the session.`]);
});

describe('Control of a desktop', () => {
  let session: Session;
  beforeEach(async () => {
    session = await start();
  });

  test('An agent is refused while a person is in control, and is shown as the controller after it acted', async () => {
    await control(session, 'take');
    const refused = await run([['desktop_key', { keys: 'x' }]]);
    expect(refused.outputs).toEqual([expect.stringContaining('Nothing was done. A person controls this desktop')]);
    expect(await controlsOf(refused.turnId)).toMatchObject([{ outcome: 'refused', sessionId: session.id }]);
    // Screenshots need no control.
    expect((await run([['desktop_screenshot', {}]])).outputs).toMatchObject([{ sessionId: session.id }]);
    await control(session, 'release');
    const done = await run([['desktop_key', { keys: 'x' }]]);
    expect(await controlsOf(done.turnId)).toMatchObject([{ outcome: 'held' }]);
    expect(await control(session, 'release')).toEqual({ controller: 'agent' });
    expect(await control(session, 'take')).toEqual({ controller: 'you' });
  });

  /** An agent that is typing while its X server is suspended. */
  async function whileTyping() {
    await terminal(session, { colour: '#0000c0', geometry: '80x20+0+0', file: 'typed' });
    await computer.exec('pkill -STOP Xtigervnc');
    const stream = await user.send({ content: toolLines([['desktop_type', { text: 'x'.repeat(2_000) }]]), ...demo });
    const { turnId } = idsOf(stream);
    await waitFor('the agent’s control', async () =>
      (await control(session, 'release')).controller === 'agent' ? true : undefined,
    );
    return { stream, turnId };
  }

  full.test('A person who takes control in the middle of typing ends it', async () => {
    const { stream, turnId } = await whileTyping();
    await control(session, 'take');
    await computer.exec('pkill -CONT Xtigervnc');
    const { chunks } = await collect(stream);
    expect(toolOutputs(chunks)).toEqual([
      expect.stringContaining('The input was stopped in the middle. A person controls'),
    ]);
    expect(await controlsOf(turnId)).toMatchObject([{ outcome: 'lost' }]);
    await run([['desktop_screenshot', {}]]);
    const { stdout } = await computer.exec('cat typed');
    expect(stdout.length).toBeLessThan(2_000);
    expect(await control(session, 'take')).toEqual({ controller: 'you' });
  });

  full.test('A second turn is refused while the turn in control runs, and accepted after that has ended', async () => {
    const { turnId } = await whileTyping();
    const beside = await run([['desktop_key', { keys: 'x' }]]);
    expect(beside.outputs).toEqual([expect.stringContaining('Another turn controls')]);
    await computer.exec('pkill -CONT Xtigervnc');
    await collect(await user.open(`/chat/turns/${turnId}/stream`));
    expect((await run([['desktop_key', { keys: 'x' }]])).outputs).toEqual([{ sessionId: session.id }]);
  });

  full.test('A stopped turn types no more and gives up control', async () => {
    const { turnId } = await whileTyping();
    await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
    await waitFor('the turn to give up control', async () =>
      (await control(session, 'release')).controller === 'none' ? true : undefined,
    );
    await computer.exec('pkill -CONT Xtigervnc');
    const { outputs } = await run([['desktop_key', { keys: 'ctrl+d' }]]);
    expect(outputs).toEqual([{ sessionId: session.id }]);
  });
});
