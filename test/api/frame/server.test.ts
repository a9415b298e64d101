import http from 'node:http';
import net from 'node:net';
import type { ApiDeps } from '../../../api/frame/deps.ts';
import { type RunningApi, startApi } from '../../../api/frame/server.ts';
import { ConfigError } from '../../../config/index.ts';
import { buildApi, type TestApi } from '../../builders/api.ts';

let api: TestApi;
let release: () => void;
let held: Promise<void>;
let isAsked: Promise<void>;
let asked: () => void;

beforeAll(async () => {
  api = await buildApi();
});
afterAll(() => api.close());
beforeEach(() => {
  held = new Promise((resolve) => {
    release = resolve;
  });
  isAsked = new Promise((resolve) => {
    asked = resolve;
  });
});

/** A server whose /readyz takes as long as the test wants (and at most its own two seconds). */
function start(port = '0'): Promise<RunningApi> {
  const { deps } = api;
  const config = { ...deps.config, http: { ...deps.config.http, port: Number(port) } };
  const check = () => {
    asked();
    return held;
  };
  return startApi({ ...deps, config, checks: [{ name: 'slow', check }] } satisfies Omit<
    ApiDeps,
    'draining' | 'closing'
  >);
}

const agent = new http.Agent({ keepAlive: true });
afterAll(() => agent.destroy());

function get(url: string): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    http.get(url, { agent }, (response) => resolve(response.resume())).on('error', reject);
  });
}

test('The server answers at the address that it reports, and stops', async () => {
  const server = await start();
  expect(server.url).toMatch(/^http:\/\/localhost:\d+$/);
  expect((await get(`${server.url}/healthz`)).statusCode).toBe(200);
  await server.close();
  await expect(connect(server.url)).rejects.toThrow(/ECONNREFUSED/);
});

test('The error for a taken port is one line that names the setting', async () => {
  const server = await start();
  const { port } = new URL(server.url);
  await expect(start(port)).rejects.toThrow(ConfigError);
  await expect(start(port)).rejects.toThrow(new RegExp(`^Port ${port} is taken\\..*ATRIUM_PORT`));
  await server.close();
});

test('closing waits for an open request, and takes no new connection meanwhile', async () => {
  const server = await start();
  const open = get(`${server.url}/readyz`);
  await isAsked;
  let isClosed = false;
  const closing = server.close().then(() => {
    isClosed = true;
  });
  await expect(connect(server.url)).rejects.toThrow(/ECONNREFUSED/);
  expect(isClosed).toBe(false);
  release();
  expect((await open).statusCode).toBe(200);
  await closing;
});

test('Requests that are still open after the grace period are cut', async () => {
  const server = await start();
  const open = expect(get(`${server.url}/readyz`)).rejects.toThrow(/hang up|ECONNRESET/);
  await isAsked;
  await server.close({ graceMs: 50 });
  await open;
  release();
});

test('A draining server is not ready, but answers requests, and then it closes', async () => {
  const server = await start();
  release();
  expect((await get(`${server.url}/readyz`)).statusCode).toBe(200);
  const closing = server.close({ drainMs: 500, graceMs: 50 });
  expect((await get(`${server.url}/readyz`)).statusCode).toBe(503);
  const other = await fetch(`${server.url}/healthz`, { headers: { connection: 'close' } });
  expect(other.status).toBe(200);
  await closing;
  await expect(connect(server.url)).rejects.toThrow(/ECONNREFUSED/);
});

test('Closing twice is closing once', async () => {
  const server = await start();
  await Promise.all([server.close(), server.close()]);
});

function connect(url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.destroy();
      resolve();
    });
    socket.on('error', reject);
  });
}
