import { once } from 'node:events';
import { connect as connectTo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import mysql from 'mysql2/promise';
import { newId } from '../../base/ids.ts';
import { createComputerEgress } from '../../bin/computers/egress.ts';
import { createServices, type Services } from '../../bin/support/services.ts';
import type { TenantServer } from '../../integrations/databases/tenantServer.ts';
import { databaseHost, databasePort } from '../../integrations/egress/databaseNames.ts';
import { defaultComputer } from '../../models/computers/defaultComputer.ts';
import { finishAlignment } from '../../models/databases/alignment.ts';
import type { AppDatabase } from '../../models/databases/connections.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { buildSpace, buildUser } from '../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { temporaryFolder } from '../support/folders.ts';
import { tenantServer } from '../support/runServer.ts';
import { waitFor } from '../support/waitFor.ts';

// A computer reaches the databases of its space, and no other internal address.

const placesOfSpace = 5;

let environment: TestEnvironment;
let services: Services;
let server: TenantServer;
beforeAll(async () => {
  environment = await createTestEnvironment({
    ...(await tenantServer()),
    ATRIUM_DATABASE_SPACE_CONNECTIONS: String(placesOfSpace),
  });
  const { config, database } = environment;
  const logger = createLogger({ level: 'silent' });
  services = await createServices({ config, logger, readers: false, remoteWriters: false, database });
  if (services.tenantServer === undefined) throw new Error('There is a server for databases.');
  server = services.tenantServer;
});
afterAll(async () => {
  await services.close();
  await environment.close();
});

/** Makes a space with a computer's egress socket, and an app that is connected to a database. */
async function setUp(egress: ReturnType<typeof createComputerEgress>) {
  const { user } = await buildUser(services.identity);
  const { space } = await buildSpace(services.identity, user.id);
  const actor = { userId: user.id, credentialId: null, address: null };
  const { wishes, ofApp } = services.spaceDatabases;
  const where = { spaceId: space.id, id: newId('spaceDatabase'), actor };
  const app = { id: newId('app'), itemId: newId('driveItem') };
  const row = { id: app.id, item_id: app.itemId, live: 1, space_id: space.id, manifest: '{}', manifest_tag: '' };
  await environment.database.pool.query('INSERT INTO apps SET ?', [
    { ...row, created_by: user.id, created_at: new Date() },
  ]);
  await wishes.make({ ...where, name: 'shop' }, actor);
  await wishes.connect({ ...where, app });
  await align(where.id);
  const { id: computerId } = await defaultComputer(environment.database, space.id);
  const socket = path.join(temporaryFolder(), 'egress.sock');
  await egress.open({ computerId, path: socket });
  const found = await ofApp(app.id);
  if (found === undefined) throw new Error('The app has a database.');
  return {
    actor,
    spaceId: space.id,
    found,
    socket,
    details: () => services.spaceDatabases.connection(where),
    async disconnect() {
      await wishes.disconnect({ ...where, itemId: app.itemId });
      await align(where.id);
    },
  };
}

async function align(id: string): Promise<void> {
  const done = await server.align(id, async () => {
    const wanted = await services.spaceDatabases.alignment(id);
    if (wanted === undefined) throw new Error('It has a row.');
    const accounts = wanted.accounts.map(({ serverUser: user, ...rest }) => ({ user, ...rest }));
    const { serverName: name, isFull, compacts } = wanted;
    return { name, state: 'open' as const, isFull, compacts: compacts > 0, accounts, wanted };
  });
  if (done !== undefined) await finishAlignment(environment.database, done.wanted);
}

/** Connects through the proxy behind this socket. Rejects with the proxy's status line. */
async function through(socketPath: string, host: string, port: number): Promise<Socket> {
  const socket = connectTo(socketPath);
  socket.on('error', () => undefined);
  socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  let head = '';
  for (let byte = await readByte(socket); byte !== undefined; byte = await readByte(socket)) {
    head += byte;
    if (head.endsWith('\r\n\r\n')) break;
  }
  if (head.startsWith('HTTP/1.1 200')) return socket;
  socket.destroy();
  throw new Error(head.split('\r\n')[0]);
}

/** Reads only the next byte, since bytes after the proxy's answer are for the client. */
async function readByte(socket: Socket): Promise<string | undefined> {
  for (;;) {
    const byte = socket.read(1) as Buffer | null;
    if (byte !== null) return byte.toString('latin1');
    if (socket.readableEnded || socket.destroyed) return undefined;
    await Promise.race([once(socket, 'readable'), once(socket, 'end'), once(socket, 'close')]);
  }
}

async function enterBy(socketPath: string, { serverName, user, password }: AppDatabase) {
  const stream = await through(socketPath, databaseHost(serverName), databasePort);
  const connection = await mysql.createConnection({ user, password, database: serverName, stream });
  connection.on('error', () => undefined);
  return connection;
}

test('a computer reaches the database of an app of its own space, only by its name and port', async () => {
  await using egress = createComputerEgress(services);
  const [own, other] = [await setUp(egress), await setUp(egress)];
  const connection = await enterBy(own.socket, own.found);
  const [rows] = await connection.query('SELECT DATABASE() AS name');
  expect(rows).toEqual([{ name: own.found.serverName }]);
  const log = await services.egressRules.list(own.spaceId, { limit: 10 });
  expect(log.data).toMatchObject([
    { purpose: 'computer', host: databaseHost(own.found.serverName), port: databasePort, refusal: null },
  ]);

  // Refused: another space's computer, other ports, an unknown database, and the server's own addresses.
  const host = databaseHost(own.found.serverName);
  for (const [socket, to, port] of [
    [other.socket, host, databasePort],
    [own.socket, host, server.port],
    [own.socket, host, 443],
    [own.socket, databaseHost('dnobody'), databasePort],
    [own.socket, '127.0.0.1', server.port],
    [own.socket, 'localhost', server.port],
    [own.socket, '127.0.0.1', databasePort],
  ] as const) {
    await expect(through(socket, to, port)).rejects.toThrow(/^HTTP\/1\.1 (403|502)/);
  }

  await own.disconnect();
  await expect(connection.query('SELECT 1')).rejects.toBeDefined();
  await expect(through(own.socket, host, databasePort)).rejects.toThrow(/^HTTP\/1\.1 (403|502)/);
});

test("connections to the server end when the app is disconnected, also those of the space's own account", async () => {
  await using egress = createComputerEgress(services);
  const own = await setUp(egress);
  const host = databaseHost(own.found.serverName);
  // The server still lets the space's own account in.
  const connection = await enterBy(own.socket, { ...own.found, ...(await own.details()) });
  await egress.review();
  await connection.query('SELECT 1');
  await own.disconnect();
  await connection.query('SELECT 1');
  await egress.review();
  await expect(connection.query('SELECT 1')).rejects.toBeDefined();
  const log = await services.egressRules.list(own.spaceId, { limit: 1 });
  expect(log.data).toMatchObject([{ host, port: databasePort, refusal: expect.stringContaining('no app') }]);
});

test('a space with an allow list still reaches its own databases', async () => {
  await using egress = createComputerEgress(services);
  const own = await setUp(egress);
  await services.egressRules.put(own.spaceId, { allow: ['example.com'], deny: [] }, own.actor);
  const connection = await enterBy(own.socket, own.found);
  await egress.review();
  expect((await connection.query('SELECT 1 AS one'))[0]).toEqual([{ one: 1 }]);
  connection.destroy();
});

test('the computers of a space have a limited number of connections, and another space has its own', async () => {
  await using egress = createComputerEgress(services);
  const [own, other] = [await setUp(egress), await setUp(egress)];
  const open = await Promise.all(Array.from({ length: placesOfSpace }, () => enterBy(own.socket, own.found)));
  await expect(enterBy(own.socket, own.found)).rejects.toThrow(/^HTTP\/1\.1 429/);
  const theirs = await enterBy(other.socket, other.found);
  theirs.destroy();
  open.pop()?.destroy();
  const again = await waitFor('a free slot', () => enterBy(own.socket, own.found).catch(() => undefined));
  for (const connection of [...open, again]) connection.destroy();
});

test('a name that looks like a database does not lead to servers on this machine', async () => {
  const listener = createServer((socket) => socket.end('inside'));
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const { port } = listener.address() as { port: number };
  await using egress = createComputerEgress(services);
  const own = await setUp(egress);
  for (const host of [
    '127.0.0.1.databases.internal',
    'databases.internal',
    `x.${databaseHost(own.found.serverName)}`,
  ]) {
    await expect(through(own.socket, host, port)).rejects.toThrow(/^HTTP\/1\.1 (403|502)/);
    await expect(through(own.socket, host, databasePort)).rejects.toThrow(/^HTTP\/1\.1 (403|502)/);
  }
  listener.close();
});
