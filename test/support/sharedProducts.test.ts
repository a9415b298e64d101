import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stackEnvironment } from './environment.ts';
import { tenantServer } from './runServer.ts';
import { type RunServer, type SharedProduct, serveSharedProducts } from './sharedProducts.ts';

let server: RunServer;
beforeAll(async () => {
  server = await serveSharedProducts({ address: stackEnvironment().ATRIUM_TEMPORAL_ADDRESS ?? '' }, tenantServer);
});
afterAll(() => server.close());

const nowhere = 'http://127.0.0.1:9';
const borrow = async (providerUrl = nowhere): Promise<SharedProduct> => {
  const response = await fetch(`${server.url}/products/a`, { method: 'POST', body: providerUrl });
  expect(response.status).toBe(200);
  return (await response.json()) as SharedProduct;
};
const giveBack = (query = '') => fetch(`${server.url}/products/a${query}`, { method: 'DELETE' });
const installationOf = ({ environment }: SharedProduct) => environment.ATRIUM_INSTALLATION;

test("the next test file gets the same Atrium, which now uses that file's provider", async () => {
  const first = await borrow();
  await giveBack();
  const asked: string[] = [];
  const provider = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end();
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  const second = await borrow(`http://127.0.0.1:${(provider.address() as AddressInfo).port}`);
  expect(second).toEqual(first);
  await fetch(`${second.environment.ATRIUM_COMPATIBLE_BASE_URL}/models`);
  expect(asked).toEqual(['/v1/models']);
  provider.close();
  await giveBack();
});

test('an Atrium that died or was not returned is replaced', async () => {
  const first = await borrow();
  await giveBack();
  process.kill(first.pid, 'SIGKILL');
  const second = await borrow();
  expect(installationOf(second)).not.toBe(installationOf(first));
  // The second file was aborted, so it did not return its Atrium.
  const third = await borrow();
  expect(installationOf(third)).not.toBe(installationOf(second));
  expect((await fetch(`${third.apiUrl}/healthz`)).status).toBe(200);
});

test('an Atrium that is returned as broken is ended', async () => {
  const { apiUrl } = await borrow();
  await giveBack('?broken');
  await expect(fetch(`${apiUrl}/healthz`)).rejects.toThrow();
});
