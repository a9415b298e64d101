import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkHosts } from '../../../bin/computers/check.ts';
import type { Identity } from '../../../models/identity/index.ts';
import { buildChatUser } from '../../builders/chat.ts';
import { computerOf, type TestComputer } from '../../builders/computer.ts';
import { buildIdentity } from '../../builders/identity.ts';
import { shutDownHost } from '../../support/computerPrograms.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { type ProductProcess, startProduct } from '../../support/product.ts';
import { waitFor } from '../../support/waitFor.ts';

/** As in production: an API process, and a worker process that hosts computers. */
const dir = mkdtempSync(join(tmpdir(), 'atrium-computers-'));
// The users of the computers need to pass through this folder.
chmodSync(dir, 0o755);
let environment: TestEnvironment;
let identity: Identity;
let worker: ProductProcess;
let api: ProductProcess;
let computer: TestComputer;

beforeAll(async () => {
  environment = await createTestEnvironment({ ATRIUM_COMPUTERS: 'auto', ATRIUM_COMPUTERS_DIR: dir });
  identity = await buildIdentity(environment);
  worker = await startProduct(environment, 'worker');
  api = await startProduct(environment, 'api');
  const user = await buildChatUser({ url: api.apiUrl, identity });
  const { computerId } = await user.get<{ computerId: string }>(`/api/spaces/${user.spaceId}/computers/status`);
  computer = computerOf(user, computerId);
});
afterAll(async () => {
  await Promise.all([api.stop(), worker.stop()]);
  await shutDownHost(dir);
  rmSync(dir, { recursive: true, force: true });
  await environment.close();
});

test('a computer of the worker is woken and used through the API', async () => {
  await computer.expect(200, 'POST', '/wake');
  expect(await computer.exec('cat; exit 3', { stdin: 'from the API' })).toMatchObject({
    stdout: 'from the API',
    exitCode: 3,
  });
  const metrics = await computer.expect<{ use: { tasks: number } }>(200, 'GET', '/metrics');
  expect(metrics.use).toMatchObject({ tasks: expect.any(Number), diskMiB: expect.any(Number) });
});

test('The API refuses the token of a computer', async () => {
  const token = await identity.hostTokens.sign(computer.id);
  const response = await fetch(api.apiUrl + computer.path, { headers: { authorization: `Bearer ${token}` } });
  expect([response.status, await response.json()]).toEqual([401, expect.objectContaining({ code: 'INVALID_TOKEN' })]);
});

test('Without its worker a computer is reported as lost, and the next worker is found by its new address', async () => {
  const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', { command: 'sleep 300' });
  expect(await checkHosts(environment.config)).toMatchObject({
    state: 'ok',
    detail: expect.stringMatching(/^\S+ http:\/\/127\.0\.0\.1:\d+ with bubblewrap/),
  });
  await worker.stop();
  const lost = await computer.expect<{ code: string }>(503, 'GET', `/processes/${id}`);
  expect(lost.code).toBe('HOST_LOST');
  expect(await checkHosts(environment.config)).toMatchObject({
    state: 'wrong',
    detail: expect.stringMatching(/does not answer at http:\/\/127\.0\.0\.1:\d+: see ATRIUM_COMPUTERS_URL$/),
  });
  worker = await startProduct(environment, 'worker');
  const found = await waitFor('the worker to be found', async () => {
    const response = await computer.fetch(`/processes/${id}`);
    return response.status === 200 && ((await response.json()) as { state: string });
  });
  expect(found.state).toBe('running');
  expect((await computer.exec('echo again')).stdout).toBe('again\n');
});

test('A second worker takes over the computers of its folder only when the first one is killed', async () => {
  const { id } = await computer.expect<{ id: string }>(201, 'POST', '/processes', { command: 'sleep 300' });
  await using second = await startProduct(environment, 'worker', { ATRIUM_LOG_LEVEL: 'info' }).then((process) => ({
    ...process,
    [Symbol.asyncDispose]: () => process.stop(),
  }));
  await waitFor('the second to find the folder taken', () => second.log().includes('takes over when that one ends'));
  await worker.kill('SIGKILL');
  const found = await waitFor('the computer to be found at the second worker', async () => {
    const response = await computer.fetch(`/processes/${id}`);
    return response.status === 200 && ((await response.json()) as { state: string });
  });
  expect(found.state).toBe('running');
  await waitFor('the second to say so', () => second.log().includes('has taken over the computers of its folder'));
  expect((await computer.exec('echo taken over')).stdout).toBe('taken over\n');
});
