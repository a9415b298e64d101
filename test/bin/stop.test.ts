import { randomBytes } from 'node:crypto';
import { checkMasterKey, openEnvelope } from '../../models/identity/index.ts';
import { startAtrium } from '../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { inFull } from '../support/inFull.ts';
import type { TestProcess } from '../support/processes.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('bin');

/** The stop of `api` and `worker`, and the probes of a worker. */
let atrium: TestEnvironment;
let wire: TcpProxy;
let running: TestProcess | undefined;

beforeAll(async () => {
  atrium = await createTestEnvironment();
  wire = await startTcpProxy(() => atrium.config.database.url);
});
afterEach(() => {
  wire.thaw();
  running?.child.kill('SIGKILL');
});
afterAll(async () => {
  await wire.stop();
  await atrium.close();
});

interface Ready {
  apiUrl?: string;
  probesUrl?: string;
}

function start(role: string, settings: Record<string, string>): TestProcess {
  const url = new URL(atrium.config.database.url);
  url.port = new URL(wire.url).port;
  const variables = { ...atrium.environment, ATRIUM_DATABASE_URL: url.href, ATRIUM_STOP_GRACE_SECONDS: '1' };
  running = startAtrium([role, '--json'], { ...variables, ...settings });
  return running;
}

const ready = (process: TestProcess) =>
  waitFor('the ready line', () => process.stdout().includes('\n') && (JSON.parse(process.stdout()) as Ready));

async function readinessOf(url = ''): Promise<{ status: number; parts: string[] }> {
  const response = await fetch(`${url}/readyz`, { headers: { connection: 'close' } });
  const { parts = [], errors = [] } = (await response.json()) as Record<string, { name: string; pointer: string }[]>;
  return {
    status: response.status,
    parts: [...parts.map(({ name }) => name), ...errors.map(({ pointer }) => pointer)],
  };
}

test('a process whose master key does not fit its database is not ready', async () => {
  await checkMasterKey(await openEnvelope(atrium.database, atrium.config));
  const other = start('worker', { ATRIUM_WORKER_PORT: '0', ATRIUM_MASTER_KEY: randomBytes(32).toString('base64') });
  const { probesUrl } = await ready(other);
  const { status, parts } = await readinessOf(probesUrl);
  expect([status, parts]).toEqual([503, ['keys']]);
});

test('a worker serves health, readiness and metrics, and is not ready while its database is frozen', async () => {
  const process = start('worker', { ATRIUM_WORKER_PORT: '0' });
  const { apiUrl, probesUrl } = await ready(process);
  expect(apiUrl).toBeUndefined();
  expect((await fetch(`${probesUrl}/healthz`)).status).toBe(200);
  expect(await readinessOf(probesUrl)).toEqual({
    status: 200,
    parts: ['worker', 'database', 'temporal', 'keys', 'storage'],
  });
  expect(await (await fetch(`${probesUrl}/metrics`)).text()).toMatch(/^atrium_worker_activities_in_flight \d+$/m);
  const forwarded = await fetch(`${probesUrl}/metrics`, { headers: { 'x-forwarded-for': '10.0.0.1' } });
  expect(forwarded.status).toBe(403);
  expect((await fetch(`${probesUrl}/api/me`)).status).toBe(404);

  wire.freeze();
  expect(await readinessOf(probesUrl)).toEqual({ status: 503, parts: ['database'] });
  expect((await fetch(`${probesUrl}/healthz`)).status).toBe(200);
  process.child.kill('SIGTERM');
  expect((await process.exited).code).toBe(0);
});

test('a worker without a port for probes does not listen', async () => {
  const process = start('worker', {});
  expect((await ready(process)).probesUrl).toBeUndefined();
  process.child.kill('SIGTERM');
  expect((await process.exited).code).toBe(0);
});

full.test(
  'a stopping API is not ready, answers while it drains, and ends although its database is frozen',
  async () => {
    const process = start('api', { ATRIUM_DRAIN_SECONDS: '10' });
    const { apiUrl } = await ready(process);
    expect((await readinessOf(apiUrl)).status).toBe(200);
    wire.freeze();
    const unanswered = fetch(`${apiUrl}/auth/exchange-code`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: 'K7QD-9XMR-2TWH-PZ4C' }),
    }).catch(() => undefined);
    process.child.kill('SIGTERM');
    await waitFor('the API to say that it stops', async () => {
      const { status, parts } = await readinessOf(apiUrl);
      return status === 503 && parts[0] === 'server';
    });
    expect((await fetch(`${apiUrl}/healthz`)).status).toBe(200);
    expect((await process.exited).code).toBe(0);
    await unanswered;
  },
);

describe('while Temporal is frozen', () => {
  let temporal: TcpProxy;
  let settings: Record<string, string>;
  beforeEach(async () => {
    temporal = await startTcpProxy(() => `http://${atrium.config.temporal.address}`);
    settings = { ATRIUM_TEMPORAL_ADDRESS: new URL(temporal.url).host };
  });
  afterEach(() => temporal.stop());

  full.test('a worker ends on SIGTERM', async () => {
    const process = start('worker', settings);
    await ready(process);
    temporal.freeze();
    process.child.kill('SIGTERM');
    expect((await process.exited).code).toBe(0);
  });

  test('an API that is not ready yet ends on SIGTERM', async () => {
    temporal.freeze();
    const process = start('api', settings);
    await waitFor('the first connection', () => temporal.connections() > 0);
    process.child.kill('SIGTERM');
    expect((await process.exited).code).toBe(0);
    expect(process.stdout()).toBe('');
  });
});
