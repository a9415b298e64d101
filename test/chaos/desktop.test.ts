import { buildChatUser } from '../builders/chat.ts';
import { buildComputer, buildHostingProduct } from '../builders/computer.ts';
import type { TestProduct } from '../builders/product.ts';
import { getDesktopPrograms } from '../support/desktopPrograms.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

interface Session {
  id: string;
  status: string;
  end: { code: string } | null;
}

const sessions = '/desktop/sessions';
let product: TestProduct;

beforeAll(async () => {
  await getDesktopPrograms();
  product = await buildHostingProduct({ ...hurriedSweeper, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
}, 300_000);
afterAll(() => product?.close());

async function killAll(): Promise<void> {
  await product.process.kill('SIGKILL');
  await product.restart();
}

test('After kills there is no stray X server, and each session has its true state', async () => {
  const computer = await buildComputer(product, await buildChatUser(product));
  const list = async () => (await computer.expect<{ data: Session[] }>(200, 'GET', sessions)).data;
  const servers = async () => Number((await computer.exec('pgrep -c Xtigervnc')).stdout);
  const { pool } = product.environment.database;
  const statusOf = async () => {
    const [rows] = await pool.query('SELECT status FROM desktop_sessions ORDER BY id DESC LIMIT 1');
    return (rows as { status: string }[])[0]?.status;
  };
  await computer.exec('true');

  // Killed while the session starts: it runs once, and is reported as running.
  const lost = computer.expect<Session>(200, 'POST', sessions, { resolution: '800x600' }).catch(() => undefined);
  await waitFor('the row of the session', async () => (await statusOf()) !== undefined);
  await killAll();
  await lost;
  const session = await waitFor('the session', async () => (await list()).find(({ status }) => status === 'running'));
  expect(await list()).toHaveLength(1);
  expect(await servers()).toBe(1);

  // Killed while it runs: it goes on.
  await killAll();
  expect(await list()).toMatchObject([{ id: session.id, status: 'running' }]);
  expect((await computer.fetch(`${sessions}/${session.id}/screenshot`)).status).toBe(200);

  // Killed while it ends: it ends.
  const deleted = computer.fetch(`${sessions}/${session.id}`, { method: 'DELETE' }).catch(() => undefined);
  await waitFor('the session to end', async () => (await statusOf()) !== 'running');
  await killAll();
  await deleted;
  expect(await list()).toMatchObject([{ status: 'ended', end: { code: 'DESKTOP_DELETED' } }]);
  await waitFor('the X server to end', async () => (await servers()) === 0);

  // Killed while its X server dies.
  const next = await computer.expect<Session>(200, 'POST', sessions, { resolution: '800x600' });
  await computer.exec('pkill -9 Xtigervnc');
  await killAll();
  await waitFor('the session to end', async () => {
    const { end } = await computer.expect<Session>(200, 'GET', `${sessions}/${next.id}`);
    return end?.code === 'X_SERVER_ENDED';
  });
}, 300_000);
