import { transaction } from '../../models/database/database.ts';
import { noteEvent } from '../../models/webhooks/events.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { startReceiver } from '../builders/webhookReceiver.ts';
import { inFull } from '../support/inFull.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('webhooks');

// Committed events are delivered, whatever is killed in between.

jest.setTimeout(300_000);

let receiver: Awaited<ReturnType<typeof startReceiver>>;
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  receiver = await startReceiver();
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    ATRIUM_EGRESS_ALLOW_INTERNAL: receiver.host,
    ATRIUM_WEBHOOK_RETRY_SECONDS: '3,3,3',
  });
  user = await product.user();
  const body = { url: receiver.url };
  await user.fetch(`/api/spaces/${user.spaceId}/webhook-endpoints`, { method: 'POST', body });
});
afterAll(async () => {
  await product.close();
  await receiver.close();
});

const note = (id: string) => {
  const event = { id, type: 'run.ended', spaceId: user.spaceId, data: { runId: id } } as const;
  return transaction(product.environment.database, (tx) => noteEvent(tx, event));
};
const statuses = async () => {
  const sql = 'SELECT status, attempts FROM webhook_deliveries WHERE space_id = ? ORDER BY id';
  const [rows] = await product.environment.database.pool.query(sql, [user.spaceId]);
  return rows as { status: string; attempts: number }[];
};
const allDelivered = () =>
  waitFor(
    'all events to be delivered',
    async () => {
      const rows = await statuses();
      return rows.every(({ status }) => status === 'delivered') ? rows : undefined;
    },
    { timeoutMs: 120_000 },
  );

test('A kill between the commit of an event and its delivery loses nothing', async () => {
  await product.process.kill('SIGKILL');
  // This process has no launcher, so the event is committed but no workflow is told.
  await note('run.ended:chaos-1');
  await product.restart();
  expect(await allDelivered()).toHaveLength(1);
  expect(receiver.received).toHaveLength(1);
});

full.test('A kill between two attempts of a delivery loses nothing', async () => {
  receiver.received.length = 0;
  receiver.answerWith(500);
  await note('run.ended:chaos-2');
  await waitFor('the first attempt', () => receiver.received.length > 0, { timeoutMs: 120_000 });
  await product.process.kill('SIGKILL');
  receiver.answerWith(204);
  await product.restart();
  expect(await allDelivered()).toHaveLength(2);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
});

test('A kill while an endpoint is about to answer repeats the delivery with the same id', async () => {
  receiver.received.length = 0;
  const before = (await statuses()).length;
  const release = receiver.hold();
  await note('run.ended:chaos-3');
  await waitFor('the delivery', () => receiver.received.length > 0, { timeoutMs: 120_000 });
  await product.process.kill('SIGKILL');
  release();
  await product.restart();
  expect(await allDelivered()).toHaveLength(before + 1);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(receiver.received.length).toBeGreaterThan(1);
});
