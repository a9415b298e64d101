import { randomBytes } from 'node:crypto';
import { getPriority } from 'node:os';
import mysql, { type Connection } from 'mysql2/promise';
import { type TenantConnection, withTenantConnection } from '../../../integrations/databases/connection.ts';
import { CpuShares } from '../../../integrations/databases/cpuShares.ts';
import { createTenantServer } from '../../../integrations/databases/tenantServer.ts';
import { tenantServer } from '../../support/runServer.ts';
import { waitFor } from '../../support/waitFor.ts';

// Spaces share the CPU of the embedded server. On MySQL this does nothing, and does not fail.

const prefix = `s${randomBytes(4).toString('hex')}`;
const password = 'aPassword1';
const open: Connection[] = [];
let address: { url: string; adminPort: number };

beforeAll(async () => {
  const { ATRIUM_TENANT_DATABASE_URL: url = '', ATRIUM_TENANT_DATABASE_ADMIN_PORT: port } = await tenantServer();
  address = { url, adminPort: Number(port) };
});
afterAll(async () => {
  for (const connection of open) connection.destroy();
  for (const name of ['busy', 'other', 'quiet']) await align(name, 'gone');
});

const userOf = (name: string) => `${prefix}${name}`;

function align(name: string, state: 'open' | 'gone' = 'open') {
  const account = {
    ...{ user: userOf(name), password, previous: undefined },
    ...{ setsPasswords: false, isRevoked: false, isCut: false, onlyReads: false },
  };
  const database = { name: userOf(name), state, isFull: false, compacts: false, accounts: [account] };
  const limits = { maxConnections: 10, queryMs: 600_000 };
  return createTenantServer(address, limits).align(name, async () => database);
}

async function connect(name: string): Promise<Connection> {
  const { hostname: host, port } = new URL(address.url);
  const details = { host, port: Number(port), user: userOf(name), password };
  const connection = await mysql.createConnection(details);
  connection.on('error', () => undefined); // ended with its statement
  open.push(connection);
  return connection;
}

async function threadOf(admin: TenantConnection, connection: Connection): Promise<number> {
  const sql = 'SELECT TID AS tid FROM information_schema.PROCESSLIST WHERE ID = ?';
  const [row] = await admin.rows<{ tid: number }>(sql, [connection.threadId]);
  return Number(row?.tid);
}

test('a space that uses more than a core gets a lower priority for all its accounts while it does', async () => {
  for (const name of ['busy', 'other', 'quiet']) await align(name);
  const quiet = await connect('quiet');
  const busy = await Promise.all(['busy', 'busy', 'other', 'other'].map(connect));
  const shares = new CpuShares(
    [prefix],
    async (users) => new Map(users.map((user) => [user, user === userOf('quiet') ? 'another' : 'one'])),
  );
  await withTenantConnection(address, async (admin) => {
    await shares.look(admin);
    if (!admin.isMariaDb) return;
    const tids = await Promise.all(busy.map((connection) => threadOf(admin, connection)));
    const quietTid = await threadOf(admin, quiet);
    const own = getPriority(quietTid);
    const computing = busy.map((connection) => connection.query("SELECT BENCHMARK(1e12, SHA2('x', 512))"));
    const over = Promise.allSettled(computing);
    const look = async () => {
      await quiet.query('SELECT 1');
      await shares.look(admin);
    };
    await waitFor('all busy threads to get a lower priority', async () => {
      await look();
      return tids.every((tid) => getPriority(tid) > own + 3);
    });
    expect(getPriority(quietTid)).toBe(own);
    // A new connection has its own thread, with normal priority.
    expect(getPriority(await threadOf(admin, await connect('quiet')))).toBe(own);
    for (const { threadId } of busy) await admin.run(`KILL QUERY ${threadId}`);
    await over;
    if (process.getuid?.() !== 0) return;
    await waitFor('the priorities to be normal again', async () => {
      await look();
      return tids.every((tid) => getPriority(tid) === own);
    });
  });
});

test('a server on another machine is left alone', async () => {
  const connection = await connect('busy');
  const rows = async () => [
    {
      ...{ tid: process.pid, user: userOf('busy'), pidFile: 'none.pid', folder: '/nowhere/' },
      ...{ handling: 'one-thread-per-connection', cached: 0 },
    },
  ];
  const elsewhere = { isMariaDb: true, rows } as unknown as TenantConnection;
  const shares = new CpuShares([prefix], async () => {
    throw new Error('Nobody is asked whose they are.');
  });
  await shares.look(elsewhere);
  connection.destroy();
});
