import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { operations } from '../../../api/generated/types.gen.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { processesWith } from '../../support/processes.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

// The whole product with its own host and real sandboxes, as `npm start` runs it.

type Computer = operations['getComputer']['responses'][200]['content']['application/json'];
type Metrics = operations['getComputerMetrics']['responses'][200]['content']['application/json'];

const dir = mkdtempSync(join(tmpdir(), 'cmp-'));
chmodSync(dir, 0o755);
let product: TestProduct;

beforeAll(async () => {
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_COMPUTERS: 'auto',
    ATRIUM_LOG_LEVEL: 'warn',
    ATRIUM_COMPUTERS_DIR: dir,
    ATRIUM_COMPUTERS_IMAGE_MIB: '1024',
    ATRIUM_COMPUTER_DISK_MIB: '128',
    ATRIUM_COMPUTER_HOST_BEAT_SECONDS: '1',
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    ATRIUM_BILLING_COMPUTER_CREDITS_PER_MINUTE: '0.5',
  });
});
afterAll(async () => {
  await product.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(user: ChatUser) {
  const computers = `/api/spaces/${user.spaceId}/computers`;
  const { computerId: id } = await user.get<{ computerId: string }>(`${computers}/status`);
  const path = `${computers}/${id}`;
  const post = async (verb: string) => {
    const response = await user.fetch(`${path}/${verb}`, { method: 'POST' });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { id, path, post, get: () => user.get<Computer>(path), metrics: () => user.get<Metrics>(`${path}/metrics`) };
}

async function charges(user: ChatUser): Promise<string[]> {
  const { data } = await user.get<{ data: { kind: string; sourceId: string }[] }>(
    `/api/billing/${user.spaceId}/entries`,
  );
  return data.filter(({ kind }) => kind === 'computer').map(({ sourceId }) => sourceId);
}

test('A real computer can be woken, measured, paused, resumed, copied, recovered, stopped and deleted', async () => {
  const user = await product.user();
  const computer = await open(user);
  expect(await computer.metrics()).toMatchObject({ status: 'created', use: null });
  const woken = await Promise.all(Array.from({ length: 20 }, () => computer.post('wake')));
  expect(woken.map(({ status }) => status)).toEqual(Array(20).fill(200));
  const { use } = await computer.metrics();
  expect(use).toEqual({
    cpuSeconds: expect.any(Number),
    memoryMiB: expect.any(Number),
    memoryPeakMiB: expect.any(Number),
    tasks: expect.any(Number),
    diskMiB: expect.any(Number),
    logsMiB: 0,
    oomKills: 0,
    systemMiB: 0,
  });
  expect(await computer.post('pause')).toMatchObject({ status: 200, body: { status: 'paused' } });
  expect(await computer.post('wake')).toMatchObject({ status: 200 });
  const copy = await computer.post('fork');
  expect(copy).toMatchObject({ status: 201, body: { status: 'stopped', forkedFrom: computer.id } });
  expect(await computer.post('recover')).toMatchObject({ status: 200, body: { status: 'running', generation: 2 } });
  expect(await computer.post('stop')).toMatchObject({ status: 200, body: { status: 'stopped' } });
  // Two starts, each of less than a minute.
  expect((await charges(user)).sort()).toEqual([`computer:${computer.id}:1:0`, `computer:${computer.id}:2:0`]);
  expect((await user.fetch(computer.path, { method: 'DELETE' })).status).toBe(204);
});

test('A computer reaches each wanted state despite kills of the whole process, and no minute is paid twice', async () => {
  const user = await product.user();
  const computer = await open(user);
  for (const verb of ['wake', 'pause', 'wake', 'stop', 'recover']) {
    const asked = computer.post(verb).catch(() => undefined);
    const before = await computer.get();
    await waitFor(`${verb} to begin`, async () => {
      const { status, statusAt } = await computer.get();
      return status !== before.status || statusAt !== before.statusAt;
    });
    await product.process.kill('SIGKILL');
    await asked;
    await product.restart();
    const goal = verb === 'pause' ? 'paused' : verb === 'stop' ? 'stopped' : 'running';
    await waitFor(`${verb} to end`, async () => (await computer.get()).status === goal).catch(async (error: Error) => {
      throw new Error(`${error.message} It is: ${JSON.stringify(await computer.get())}, ${product.process.log()}`);
    });
  }
  const { pool } = product.environment.database;
  const [rows] = await pool.query('SELECT generation, minutes_charged AS minutes FROM computers WHERE id = ?', [
    computer.id,
  ]);
  const [{ generation, minutes } = { generation: 0, minutes: 0 }] = rows as { generation: number; minutes: number }[];
  const sources = await charges(user);
  expect(new Set(sources).size).toBe(sources.length);
  const last = sources.filter((source) => source.startsWith(`computer:${computer.id}:${generation}:`));
  expect([minutes > 0, last.length]).toEqual([true, minutes]);
}, 240_000);

test('A computer survives a kill of the Atrium process, but not an orderly stop', async () => {
  const user = await product.user();
  const computer = await open(user);
  await computer.post('wake');
  await product.process.kill('SIGKILL');
  await product.restart();
  expect(await computer.get()).toMatchObject({ status: 'running', generation: 1 });
  await product.process.stop();
  expect(processesWith(dir)).toEqual([]);
  await product.restart();
  expect(await computer.get()).toMatchObject({ status: 'stopped', error: { code: 'HOST_STOPPED' } });
  expect(await computer.post('wake')).toMatchObject({ status: 200 });
});
