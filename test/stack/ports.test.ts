import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { choosePort, isPortFree } from '../../stack/ports.ts';

test('the usual port is chosen if it is free, and otherwise another one', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await isPortFree(port)).toBe(false);
  expect(await choosePort(port)).not.toBe(port);
  server.close();
  await once(server, 'close');
  expect(await choosePort(port)).toBe(port);
});
