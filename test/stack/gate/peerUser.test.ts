import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { peerUser, readTable } from '../../../stack/gate/peerUser.ts';

const client = { address: '127.0.0.1', port: 47_962 };
const server = { address: '127.0.0.1', port: 28_334 };
const row = (state: string, user: number, inode: number) =>
  `   1: 0100007F:BB5A 0100007F:6EAE ${state} 00000000:00000000 00:00000000 00000000  ${user}        0 ${inode} 3 0000000000000000\n`;

test('peerUser returns the user in the row of that connection', () => {
  expect(peerUser(row('01', 1000, 77), client, server)).toBe(1000);
  expect(peerUser(row('01', 1000, 77), { ...client, port: 1 }, server)).toBeUndefined();
  expect(peerUser(row('01', 1000, 77), server, client)).toBeUndefined();
});

test('peerUser returns no user for a closed connection, although its row says root', () => {
  expect(peerUser(row('06', 0, 0), client, server)).toBeUndefined();
  expect(peerUser(row('01', 0, 0), client, server)).toBeUndefined();
  expect(peerUser(row('04', 0, 0), client, server)).toBeUndefined();
});

test('an open table shows connections that were made after it was opened', async () => {
  const table = openSync('/proc/self/net/tcp', 'r');
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  const [[accepted]] = (await Promise.all([once(listener, 'connection'), once(socket, 'connect')])) as [[Socket], []];
  const ends = [
    { address: '127.0.0.1', port: accepted.remotePort ?? 0 },
    { address: '127.0.0.1', port },
  ] as const;
  expect(peerUser(readTable(table), ...ends)).toBe(process.getuid?.());
  expect(peerUser(readTable(table), ...ends)).toBe(process.getuid?.());
  socket.destroy();
  accepted.destroy();
  listener.close();
  closeSync(table);
});
