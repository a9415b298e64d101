import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { Connection } from '@temporalio/client';
import { processStamp } from '../../stack/fileLock.mjs';
import { findPrivateNetwork } from '../../stack/gate/privateNetwork.ts';
import { getTemporal } from '../../stack/programs.ts';
import { serviceLog } from '../../stack/services.ts';
import { probeTemporal, startTemporalServer, type TemporalServer } from '../../stack/temporalServer.ts';
import { bytesOfServer, canBeOtherUser } from '../support/otherUser.ts';
import { until } from '../support/processes.ts';
import { createStackContext } from '../support/stackContext.ts';
import { waitFor } from '../support/waitFor.ts';

// Access to the embedded Temporal server. If the system does not allow a private network for the server, it has no UI
// and no HTTP API.

const context = createStackContext();
const network = findPrivateNetwork(context.environment);
const isPrivate = !('missing' in network);
const workflows = '/api/v1/namespaces/default/workflows';
let server: TemporalServer;

beforeAll(async () => {
  server = await startTemporalServer(context, await getTemporal(context));
  // The UI may have tried to connect before the server listened. It tries again after a while.
  const uiAnswers = async () => (await ask(workflows, { cookie: await signIn() })).status === 200;
  if (isPrivate) await waitFor('the UI to reach its server', uiAnswers);
});
afterAll(async () => {
  await server.service.stop();
});

/** Sends a request to the proxy in front of the UI, as any program or page could. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const url = new URL(path, server.uiUrl);
  return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
    const call = request(url, { method, headers }, (res) => {
      let text = '';
      res.on('data', (chunk: Buffer) => {
        text += chunk;
      });
      res.once('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }));
    });
    call.once('error', reject);
    call.end(method === 'POST' ? '{}' : undefined);
  });
}

const ownHost = () => new URL(server.uiUrl ?? '').host;

/** Opens the printed link. Returns the cookie that it sets. */
async function signIn(): Promise<string> {
  const { status, headers } = await ask(server.uiUrl ?? '');
  expect([status, headers.refresh]).toEqual([200, '0; url=/']);
  const [cookie = ''] = headers['set-cookie'] as string[];
  expect(cookie).toMatch(/^[^;]+; HttpOnly; SameSite=Strict; Path=\/$/);
  return cookie.split(';')[0] ?? '';
}

/** The ids of this process and of all below it: the gate and the server. */
function processesOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  return [pid, ...children.flatMap(processesOf)];
}

/** The ports on which these processes listen in the network namespace of this test. */
function listeningPorts(pids: number[]): number[] {
  const sockets = new Set(
    pids.flatMap((pid) => readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))),
  );
  const rows = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/self/net/${name}`, 'utf8').split('\n').slice(1));
  return rows
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === '0A' && sockets.has(`socket:[${inode}]`))
    .map(([, local = '']) => Number.parseInt(local.split(':')[1] ?? '', 16));
}

test('the user who runs Atrium reaches the server, and another user of the machine does not', async () => {
  const connection = await Connection.connect({ address: server.address });
  const { executions } = await connection.workflowService.listWorkflowExecutions({ namespace: 'default' });
  await connection.close();
  expect(executions).toBeInstanceOf(Array);
  expect(await bytesOfServer(server.address, { asOther: false })).toBe(9);
  if (canBeOtherUser) expect(await bytesOfServer(server.address, { asOther: true })).toBe(isPrivate ? 0 : 9);
  expect(server.openBecause === undefined).toBe(isPrivate);
});

test('only the gate and the UI listen on ports of the machine', () => {
  if (!isPrivate) return expect(server.uiUrl).toBeUndefined();
  const doors = [server.address, ownHost()].map((address) => Number(address.split(':')[1]));
  expect(listeningPorts(processesOf(server.service.pid)).toSorted()).toEqual(doors.toSorted());
});

test('only the printed link opens the UI', async () => {
  if (!isPrivate) return expect(server.uiUrl).toBeUndefined();
  const cookie = await signIn();
  const page = await ask('/', { cookie });
  expect([page.status, page.text]).toEqual([200, expect.stringContaining('<html')]);
  expect(JSON.parse((await ask(workflows, { cookie })).text)).toEqual(expect.any(Object));
  expect((await ask(workflows, { cookie, 'sec-fetch-site': 'same-origin' })).status).toBe(200);

  expect((await ask(workflows)).status).toBe(401);
  expect((await ask(workflows, { cookie: `${cookie}x` })).status).toBe(401);
  expect((await ask('/?key=guess')).status).toBe(401);
  // A foreign name that resolves to this machine (DNS rebinding), and pages of other origins, also on another port of
  // this machine.
  for (const host of ['rebound.example', `rebound.example:${ownHost().split(':')[1]}`, '127.0.0.1']) {
    expect((await ask(workflows, { cookie, host })).status).toBe(421);
  }
  for (const site of ['cross-site', 'same-site']) {
    expect((await ask(workflows, { cookie, 'sec-fetch-site': site })).status).toBe(403);
  }
  expect((await ask(workflows, { cookie, origin: 'http://127.0.0.1:9999' })).status).toBe(403);
});

test("a page of another origin cannot start a workflow, and the UI's own page can", async () => {
  if (!isPrivate) return expect(server.uiUrl).toBeUndefined();
  const cookie = await signIn();
  const { headers } = await ask('/api/v1/settings', { cookie });
  const csrf = (headers['set-cookie'] as string[]).map((line) => line.split(';')[0] ?? '').join('; ');
  const own = {
    cookie: `${cookie}; ${csrf}`,
    'x-csrf-token': csrf.replace(/^_csrf=/, ''),
    'content-type': 'application/json',
  };
  const start = '/api/v1/namespaces/default/workflows/purge';
  const origin = `http://${ownHost()}`;
  expect((await ask(start, { ...own, origin: 'http://evil.example' }, 'POST')).status).toBe(403);
  expect((await ask(start, { ...own, origin: 'null' }, 'POST')).status).toBe(403);
  const answered = await ask(start, { ...own, origin }, 'POST');
  expect([answered.status, answered.text]).toEqual([400, expect.stringContaining('WorkflowType')]);
});

test('a hanging server fails its probe, and its log has the stacks of its goroutines after an abort', async () => {
  await probeTemporal(server.address);
  const [gate = 0, ...ofServer] = processesOf(server.service.pid);
  expect(gate).toBe(server.service.pid);
  for (const pid of ofServer) process.kill(pid, 'SIGSTOP');
  await expect(probeTemporal(server.address, 500)).rejects.toThrow();
  for (const pid of ofServer) process.kill(pid, 'SIGCONT');
  await probeTemporal(server.address);
  await server.service.abort();
  expect(readFileSync(serviceLog(context, 'temporal'), 'utf8')).toContain('goroutine 1 ');
  server = await startTemporalServer(context, await getTemporal(context), server);
});

test('kill -9 of the gate ends the server', async () => {
  const pids = processesOf(server.service.pid);
  process.kill(server.service.pid, 'SIGKILL');
  await server.service.exited;
  await until(() => pids.every((pid) => processStamp(pid) === undefined));
});
