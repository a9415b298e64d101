import { type BrowserSession, browsersOf, startSite } from '../builders/browser.ts';
import { buildChatUser } from '../builders/chat.ts';
import { buildComputer, buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { getBrowserPrograms } from '../support/browserPrograms.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

let product: TestProduct;

beforeAll(async () => {
  await getBrowserPrograms();
  product = await buildHostingProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
}, 300_000);
afterAll(() => product?.close());

async function killAll(): Promise<void> {
  await product.process.kill('SIGKILL');
  await product.restart();
}

const signedIn = 'cookie:login=yes storage:me';

test('After kills there is no stray Chromium, each session has its true state, and no profile is lost', async () => {
  const computer = await buildComputer(product, await buildChatUser(product));
  const browsers = browsersOf(computer);
  const list = async () => (await browsers.expect<{ data: BrowserSession[] }>(200, 'GET', '/sessions')).data;
  const chromiums = async () => Number((await computer.exec('pgrep -fc -- "^/[^ ]*chromium --user-data-dir"')).stdout);
  const { pool } = product.environment.database;
  const statusOf = async () => {
    const [rows] = await pool.query('SELECT status FROM browser_sessions ORDER BY id DESC LIMIT 1');
    return (rows as { status: string }[])[0]?.status;
  };
  const site = await startSite(computer);
  const profile = await browsers.profile();

  // Killed while the session starts: it runs once, and is reported as running.
  const lost = browsers.start(profile).catch(() => undefined);
  await waitFor('the row of the session', async () => (await statusOf()) !== undefined);
  await killAll();
  await lost;
  const session = await waitFor('the session', async () => (await list()).find(({ status }) => status === 'running'));
  expect(await list()).toHaveLength(1);
  expect(await chromiums()).toBe(1);

  // Killed while it runs: it goes on.
  expect((await browsers.visit(session, `${site}/sign-in`)).title).toBe('signed in');
  await killAll();
  expect(await list()).toMatchObject([{ id: session.id, status: 'running' }]);
  expect(await browsers.tabs(session)).toMatchObject([{ url: `${site}/sign-in` }]);

  // Killed while it ends, and while it is saved: it ends, and the profile is saved once.
  const deleted = browsers.end(session).catch(() => undefined);
  await waitFor('the session to end', async () => (await statusOf()) !== 'running');
  await killAll();
  await deleted;
  await waitFor('the save', async () => ['saving', 'ended'].includes((await statusOf()) ?? ''));
  await killAll();
  expect(await browsers.ended(session)).toMatchObject({ end: { code: 'BROWSER_DELETED' }, save: { state: 'saved' } });
  expect(await chromiums()).toBe(0);
  const objects = async () => {
    const [rows] = await pool.query("SELECT object_key FROM drive_objects WHERE state <> 'doomed'");
    return (rows as unknown[]).length;
  };
  await waitFor('abandoned objects to be removed', async () => (await objects()) === 1);

  // Killed while its Chromium dies: the profile opens again, still signed in.
  const next = await browsers.start(profile);
  await computer.exec('pkill -9 -f -- --user-data-dir');
  await killAll();
  expect((await browsers.ended(next)).end).toMatchObject({ code: 'BROWSER_ENDED' });
  const last = await browsers.start(profile);
  expect((await browsers.visit(last, `${site}/`)).title).toBe(signedIn);
  await browsers.end(last);
  await waitFor('one save', async () => (await objects()) === 1);

  // A deleted profile is removed from the computer and from the store, even if the removal is interrupted.
  await browsers.expect(204, 'DELETE', `/profiles/${profile.id}`);
  await killAll();
  await waitFor('the files to be removed', async () => {
    const { stdout } = await computer.exec('ls -A .local/share/atrium/browsers');
    return stdout === '' && (await objects()) === 0;
  });
}, 400_000);
