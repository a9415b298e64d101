import { randomUUID } from 'node:crypto';
import type { ChatUser } from '../builders/chat.ts';
import { buildChatUser } from '../builders/chat.ts';
import { buildIdentity } from '../builders/identity.ts';
import { createTestEnvironment, type TestEnvironment } from '../support/environment.ts';
import { inFull } from '../support/inFull.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('frame');

// A repeated Idempotency-Key never makes a second object, whatever was lost the first time.

let environment: TestEnvironment;
let wire: TcpProxy;
let product: ProductProcess;
let user: ChatUser;
const overrides = () => ({ ATRIUM_DATABASE_URL: viaWire(), ATRIUM_PAYMENTS: 'development' });
beforeAll(async () => {
  environment = await createTestEnvironment();
  wire = await startTcpProxy(() => environment.config.database.url);
  product = await startProduct(environment, 'both', overrides());
  const identity = await buildIdentity(environment);
  user = await buildChatUser({
    identity,
    get url() {
      return product.apiUrl;
    },
  });
}, 240_000);
afterAll(async () => {
  await product.stop();
  await wire.stop();
  await environment.close();
});

function viaWire(): string {
  const url = new URL(environment.config.database.url);
  url.host = new URL(wire.url).host;
  return url.href;
}

const count = async (rowsOf: string) => {
  const [rows] = await environment.database.pool.query(`SELECT COUNT(*) AS n FROM ${rowsOf}`);
  return (rows as { n: number }[])[0]?.n;
};

interface Made {
  name: string;
  /** The request. */
  path: () => string;
  body: object;
  /** The table, with an optional condition. */
  rows: string;
  /**
   * Texts that are sent one after the other. The answer to the last one is lost: to the COMMIT, or to the only
   * statement.
   */
  sent: string[];
}

const kinds: Made[] = [
  {
    name: 'space',
    path: () => '/api/spaces',
    body: { name: 'lost-space' },
    rows: 'spaces',
    sent: ['lost-space', 'COMMIT'],
  },
  {
    name: 'thread',
    path: () => `/api/spaces/${user.spaceId}/threads`,
    body: { title: 'lost-thread' },
    rows: 'threads',
    sent: ['lost-thread'],
  },
  {
    name: 'checkout',
    path: () => `/api/billing/${user.spaceId}/top-up`,
    body: { amount: 10 },
    rows: 'billing_checkouts',
    sent: ['INSERT INTO billing_checkouts', 'COMMIT'],
  },
  {
    name: 'folder',
    path: () => `/api/spaces/${user.spaceId}/drive/folders`,
    body: { path: '/lost-folder', onConflict: 'rename' },
    rows: "drive_items WHERE kind = 'folder' AND name LIKE 'lost-%'",
    sent: ['lost-folder', 'COMMIT'],
  },
  {
    name: 'renamed folder',
    path: () => `/api/spaces/${user.spaceId}/drive/folders`,
    body: { path: '/lost-folder', onConflict: 'rename' },
    rows: "drive_items WHERE kind = 'folder' AND name LIKE 'lost-%'",
    sent: ['lost-folder', 'COMMIT'],
  },
  {
    name: 'upload in parts',
    path: () => `/api/spaces/${user.spaceId}/drive/uploads`,
    body: { path: '/lost.bin', size: 5 },
    rows: 'drive_uploads',
    sent: ['INSERT INTO `drive_uploads`', 'COMMIT'],
  },
  {
    name: 'MCP server',
    path: () => `/api/spaces/${user.spaceId}/mcp-servers`,
    body: { name: 'lost', url: 'http://127.0.0.1:9/mcp' },
    rows: 'mcp_servers',
    sent: ['INSERT INTO mcp_servers', 'COMMIT'],
  },
];

const post = ({ path, body }: Made, key: string) =>
  user.fetch(path(), { method: 'POST', body, headers: { 'idempotency-key': key } });

describe.each(kinds)('A $name', (made) => {
  test('The object is made once if the answer to its COMMIT is lost', async () => {
    const key = randomUUID();
    const before = (await count(made.rows)) ?? 0;
    const isLost = wire.loseAnswerTo(...made.sent);
    const first = await post(made, key);
    expect([isLost(), first.status >= 500]).toEqual([true, true]);
    const again = await post(made, key);
    const answer = await again.text();
    expect([again.status, answer]).toEqual([made.name === 'checkout' ? 200 : 201, expect.any(String)]);
    expect(await count(made.rows)).toBe(before + 1);
    const third = await post(made, key);
    expect([third.status, withoutLinks(await third.text())]).toEqual([again.status, withoutLinks(answer)]);
    expect(await count(made.rows)).toBe(before + 1);
    if (made.name === 'upload in parts') expect(await count("drive_objects WHERE state = 'arriving'")).toBe(1);
  });
});

/** Links that give access are signed anew each time. */
function withoutLinks(answer: string): string {
  return answer.replace(/X-Amz-[^"]*/g, '');
}

const space = kinds[0] as Made;

test.each(['INSERT INTO `idempotency_keys`', 'UPDATE `idempotency_keys`'])(
  'A space is made once if the answer to "%s" of its key is lost',
  async (statement) => {
    const key = randomUUID();
    const before = (await count('spaces')) ?? 0;
    const restarted = await restart('both');
    const isLost = wire.loseAnswerTo(statement);
    const first = await post(space, key);
    expect([isLost(), first.status >= 500, restarted.pid]).toEqual([true, true, product.pid]);
    expect((await post(space, key)).status).toBe(201);
    expect(await count('spaces')).toBe(before + 1);
  },
  240_000,
);

test('A refused request leaves its key free, also for another request', async () => {
  const key = randomUUID();
  const mcp = kinds.find(({ name }) => name === 'MCP server') as Made;
  expect((await post(mcp, key)).status).toBe(409);
  expect((await post({ ...mcp, body: { ...mcp.body, name: 'another' } }, key)).status).toBe(201);
});

full.test(
  'The key of a request whose process was killed is busy for a minute, then gives the same purchase',
  async () => {
    const checkout = kinds.find(({ name }) => name === 'checkout') as Made;
    const key = randomUUID();
    const before = (await count('billing_checkouts')) ?? 0;
    // Without a worker the checkout is not opened, and its request waits.
    await restart('api');
    const lost = post(checkout, key).catch(() => undefined);
    await waitFor('the checkout', async () => (await count('billing_checkouts')) === before + 1);
    await product.kill('SIGKILL');
    await lost;
    await restart('both');
    const early = await post(checkout, key);
    expect([early.status, early.headers.get('retry-after')]).toEqual([409, '1']);
    await environment.database.pool.query(
      'UPDATE idempotency_keys SET claimed_at = claimed_at - INTERVAL 61 SECOND WHERE idempotency_key = ?',
      [key],
    );
    const late = await post(checkout, key);
    const body = (await late.json()) as { checkoutId: string };
    expect([late.status, await count('billing_checkouts')]).toEqual([200, before + 1]);
    expect(await count(`billing_checkouts WHERE id = '${body.checkoutId}'`)).toBe(1);
  },
  240_000,
);

async function restart(role: 'api' | 'both'): Promise<ProductProcess> {
  await product.stop();
  product = await startProduct(environment, role, overrides());
  return product;
}
