import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import { type BrowserSession, browsersOf, startSite, type TestBrowsers } from '../../builders/browser.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { getBrowserPrograms } from '../../support/browserPrograms.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';
import { freePort } from '../identity/support.ts';

const full = inFull('browsers');

interface Link {
  id: string;
  sessionId: string;
  expiresAt: string;
  url: string;
}

let product: TestProduct;
let computer: TestComputer;
let browsers: TestBrowsers;
let site: string;
let session: BrowserSession;

beforeAll(async () => {
  await getBrowserPrograms();
  // Scripts ask for the address of the WebSocket before they connect, so the public URL needs the real port.
  const port = await freePort();
  const publicUrl = `http://localhost:${port}`;
  product = await buildHostingProduct({ ...hurriedSweeper, ATRIUM_PORT: String(port), ATRIUM_PUBLIC_URL: publicUrl });
  computer = await buildComputer(product);
  browsers = browsersOf(computer);
  site = await startSite(computer);
  session = await browsers.temporary({ url: `${site}/` });
}, 300_000);
afterAll(() => product?.close());

const link = (body: object = {}, of = session) => browsers.expect<Link>(201, 'POST', `/sessions/${of.id}/cdp`, body);
const socketOf = ({ url }: Pick<Link, 'url'>) => url;
const httpOf = ({ url }: Pick<Link, 'url'>) => url.replace(/^ws/, 'http');

interface Outcome {
  value: string;
  png: string;
  refused: string;
}

async function run(script: string, address: string): Promise<Outcome> {
  const path = fileURLToPath(new URL(`../../support/attach/${script}.mjs`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [path, address, `${site}/`], { timeout: 60_000 });
  return JSON.parse(stdout) as Outcome;
}

async function attach(to: Pick<Link, 'url'>): Promise<WebSocket> {
  const socket = new WebSocket(socketOf(to));
  await once(socket, 'open');
  return socket;
}

async function closeOf(socket: WebSocket): Promise<[code: number, reason: string]> {
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  return [code, reason.toString()];
}

/** The status and the error code that a script gets when it asks for the address of the WebSocket. */
async function refusalOf(to: Pick<Link, 'url'>): Promise<[status: number, code: string]> {
  const response = await fetch(`${httpOf(to)}/json/version`);
  return [response.status, ((await response.json()) as { code: string }).code];
}

async function ask(socket: WebSocket, method: string, params: object = {}): Promise<Record<string, unknown>> {
  const answered = Promise.withResolvers<Record<string, unknown>>();
  const listen = (data: Buffer, isBinary: boolean) => {
    expect(isBinary).toBe(false);
    const message = JSON.parse(data.toString()) as { id?: number };
    if (message.id === 1) answered.resolve(message);
  };
  socket.on('message', listen);
  socket.send(JSON.stringify({ id: 1, method, params }));
  return answered.promise.finally(() => socket.off('message', listen));
}

test.each([
  ['playwright', socketOf],
  ['playwright', httpOf],
  ['puppeteer', socketOf],
])('%s attaches, fills in a field and takes a picture while others use the browser', async (script, addressOf) => {
  const made = await link();
  const running = run(script, addressOf(made));
  const beside = browsers.expect<{ id: string; title: string }>(201, 'POST', `/sessions/${session.id}/tabs`, {
    url: `${site}/sign-in`,
  });
  expect((await beside).title).toMatch(/in$/);
  expect(await running).toEqual({
    value: script === 'playwright' ? 'Ada' : 'Grace',
    png: 'PNG',
    refused: expect.stringContaining('ERR_BLOCKED_BY_ADMINISTRATOR'),
  });
  // Others see the tab that the script opened, and the session outlives the script.
  expect((await browsers.tabs(session)).length).toBeGreaterThan(1);
  expect(await browsers.get(session)).toMatchObject({ status: 'running' });
});

test('A link keeps only a hash of its token, is listed without its address, and lasts as long as asked', async () => {
  const made = await link({ ttlSeconds: 60 });
  const token = made.url.split('/').at(-1) ?? '';
  expect(Date.parse(made.expiresAt) - Date.now()).toBeLessThanOrEqual(60_000);
  const [rows] = await product.environment.database.pool.query('SELECT * FROM browser_links WHERE id = ?', [made.id]);
  expect(JSON.stringify(rows)).not.toContain(token);
  const list = await browsers.expect<{ data: Link[] }>(200, 'GET', `/sessions/${session.id}/cdp`);
  expect(list.data.map(({ id }) => id)).toContain(made.id);
  expect(JSON.stringify(list)).not.toContain(token);
});

test('A repeated request gives the same link a new address, and the old address ends', async () => {
  const ask = async () => {
    const headers = { 'idempotency-key': `again-${session.id}` };
    const response = await browsers.fetch(`/sessions/${session.id}/cdp`, { method: 'POST', body: {}, headers });
    return (await response.json()) as Link;
  };
  const [first, second] = [await ask(), await ask()];
  expect(second.id).toBe(first.id);
  expect(await refusalOf(first)).toEqual([404, 'NOT_FOUND']);
  (await attach(second)).terminate();
});

test('a script is cut when its link is revoked', async () => {
  const made = await link();
  const socket = await attach(made);
  const closed = closeOf(socket);
  await browsers.expect(204, 'DELETE', `/sessions/${session.id}/cdp/${made.id}`);
  expect(await closed).toEqual([4002, expect.stringContaining('revoked')]);
  expect(await refusalOf(made)).toEqual([404, 'NOT_FOUND']);
  await browsers.expect(404, 'DELETE', `/sessions/${session.id}/cdp/${made.id}`);
});

test('a script is cut when its link expires', async () => {
  const made = await link();
  const socket = await attach(made);
  const sql = 'UPDATE browser_links SET expires_at = ? WHERE id = ?';
  await product.environment.database.pool.query(sql, [new Date(), made.id]);
  expect(await closeOf(socket)).toEqual([4002, expect.stringContaining('expired')]);
});

test('A script is cut when the user who made its link loses the needed role', async () => {
  const editor = await product.user();
  await product.identity.members.add(computer.user.spaceId, editor.email, 'editor');
  const theirs = browsersOf({ user: editor }, computer.user.spaceId);
  const made = await theirs.expect<Link>(201, 'POST', `/sessions/${session.id}/cdp`, {});
  const socket = await attach(made);
  const closed = closeOf(socket);
  await product.identity.members.changeRole(computer.user.spaceId, editor.id, 'viewer');
  expect(await closed).toEqual([4003, expect.any(String)]);
  expect(await refusalOf(made)).toEqual([404, 'NOT_FOUND']);
  await theirs.expect(403, 'POST', `/sessions/${session.id}/cdp`, {});
});

test('A script is cut when the user who made its link signs out', async () => {
  const editor = await product.user();
  await product.identity.members.add(computer.user.spaceId, editor.email, 'editor');
  const theirs = browsersOf({ user: editor }, computer.user.spaceId);
  const made = await theirs.expect<Link>(201, 'POST', `/sessions/${session.id}/cdp`, {});
  const socket = await attach(made);
  const closed = closeOf(socket);
  expect((await editor.fetch('/auth/logout', { method: 'POST' })).status).toBe(204);
  expect(await closed).toEqual([4003, expect.any(String)]);
  expect(await refusalOf(made)).toEqual([404, 'NOT_FOUND']);
});

test('404 for a stranger who makes, lists or revokes links of a session', async () => {
  const stranger = browsersOf({ user: await product.user() });
  const made = await link();
  await stranger.expect(404, 'POST', `/sessions/${session.id}/cdp`, {});
  await stranger.expect(404, 'GET', `/sessions/${session.id}/cdp`);
  await stranger.expect(404, 'DELETE', `/sessions/${session.id}/cdp/${made.id}`);
  expect(await refusalOf({ url: `${made.url}x` })).toEqual([404, 'NOT_FOUND']);
});

test('A session takes eight scripts, and closes the connection on a binary or an oversized message', async () => {
  const made = await link();
  const sockets = await Promise.all(Array.from({ length: 8 }, () => attach(made)));
  const [refused] = (await once(new WebSocket(socketOf(made)), 'error')) as [Error];
  expect(refused.message).toContain('429');
  const [binary, large, ...others] = sockets as [WebSocket, WebSocket, ...WebSocket[]];
  const closed = Promise.all([closeOf(binary), closeOf(large)]);
  binary.send(Buffer.from('{}'));
  large.send('x'.repeat(17 * 1_048_576));
  expect((await closed).map(([code]) => code)).toEqual([4004, 1009]);
  for (const socket of others) socket.terminate();
  // Their slots are free again.
  const again = await waitFor('a slot', () => attach(made).catch(() => undefined));
  expect(await ask(again, 'Browser.getVersion')).toMatchObject({ result: { product: expect.any(String) } });
  again.terminate();
});

test('A script that does not read does not delay the others', async () => {
  const made = await link();
  const [slow, other] = [await attach(made), await attach(made)];
  slow.pause();
  for (let id = 0; id < 200; id++) slow.send(JSON.stringify({ id, method: 'Target.getTargets' }));
  expect(await ask(other, 'Browser.getVersion')).toHaveProperty('result');
  slow.terminate();
  other.terminate();
});

full.test('Scripts that do not read large answers do not block the others, and their memory is freed', async () => {
  const made = await link();
  const tab = (await browsers.tabs(session))[0]?.id;
  const open = async () => {
    const socket = await attach(made);
    const attached = await ask(socket, 'Target.attachToTarget', { targetId: tab, flatten: true });
    return { socket, sessionId: (attached.result as { sessionId: string }).sessionId };
  };
  const evaluate = ({ socket, sessionId }: Awaited<ReturnType<typeof open>>, mebibytes: number) => {
    const params = { expression: `'x'.repeat(${mebibytes} * 1048576)`, returnByValue: true };
    socket.send(JSON.stringify({ id: 1, method: 'Runtime.evaluate', params, sessionId }));
  };
  const slow = await Promise.all(Array.from({ length: 6 }, open));
  for (const one of slow) {
    one.socket.pause();
    evaluate(one, 30);
  }
  const other = await open();
  expect(await ask(other.socket, 'Browser.getVersion')).toHaveProperty('result');
  const answer = ask(other.socket, 'Browser.getVersion');
  for (const { socket } of slow) socket.terminate();
  await answer;
  evaluate(other, 40);
  const lengths: number[] = [];
  other.socket.on('message', (data: Buffer) => lengths.push(data.length));
  await waitFor('the answer', async () => lengths.some((length) => length > 40 * 1_048_576));
  const closed = closeOf(other.socket);
  evaluate(other, 50);
  expect(await closed).toEqual([4006, expect.stringContaining('48 MiB')]);
});

full.test('A script decides where downloads land only while it is attached', async () => {
  const socket = await attach(await link());
  const elsewhere = { behavior: 'allow', downloadPath: '/tmp/elsewhere' };
  expect(await ask(socket, 'Browser.setDownloadBehavior', elsewhere)).toHaveProperty('result');
  const tabs = `/sessions/${session.id}/tabs`;
  await browsers.fetch(tabs, { method: 'POST', body: { url: `${site}/file-1` } });
  await waitFor(
    'the file',
    async () => (await computer.exec('ls /tmp/elsewhere/report.txt')).exitCode === 0 || undefined,
  );
  socket.close();
  await once(socket, 'close');
  await browsers.fetch(tabs, { method: 'POST', body: { url: `${site}/file-2` } });
  await waitFor('the download', async () => (await browsers.get(session)).downloads.files > 0 || undefined);
  expect(await browsers.get(session)).toMatchObject({ downloads: { files: 1 } });
});

test('A script that closes Chromium ends the session, which says so', async () => {
  const short = await browsers.temporary();
  const made = await link({}, short);
  const socket = await attach(made);
  const closed = closeOf(socket);
  socket.send(JSON.stringify({ id: 1, method: 'Browser.close' }));
  expect(await closed).toEqual([4001, expect.any(String)]);
  expect(await browsers.ended(short)).toMatchObject({ end: { code: 'BROWSER_ENDED' } });
  expect(await refusalOf(made)).toEqual([410, 'BROWSER_SESSION_ENDED']);
  await browsers.expect(410, 'POST', `/sessions/${short.id}/cdp`, {});
});

test('a script is cut when its session ends', async () => {
  const socket = await attach(await link());
  const closed = closeOf(socket);
  await browsers.end(session);
  expect(await closed).toEqual([4001, expect.any(String)]);
});
