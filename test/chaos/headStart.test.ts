import type { ChatUser } from '../builders/chat.ts';
import { idsOf } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../builders/product.ts';
import { startFakePushService } from '../fakes/pushService.ts';
import { stackEnvironment } from '../support/environment.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { collect, type EventStream, untilChunk } from '../support/sseClient.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

/** Model calls that begin before their workflow, while Temporal cannot be reached. */
const tokens = 40;
const expectedText = Array.from({ length: tokens }, (_, token) => `w${token} `).join('');

let temporal: TcpProxy;
let product: TestProduct;
let user: ChatUser;

beforeAll(async () => {
  temporal = await startTcpProxy(() => `http://${stackEnvironment().ATRIUM_TEMPORAL_ADDRESS}`);
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_TEMPORAL_ADDRESS: new URL(temporal.url).host,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
    ATRIUM_EGRESS_ALLOW_INTERNAL: '127.0.0.1', // the push service
  });
  user = await product.user();
});

afterEach(() => {
  temporal.open();
});

afterAll(async () => {
  await product.close();
  await temporal.stop();
});

async function sendWithoutTemporal(name: string, count = tokens): Promise<EventStream> {
  temporal.shut();
  return user.send({ content: fake({ tokens: count, intervalMs: 20 }, name), modelId: 'fake-1' });
}

interface Ready {
  status: string;
  parts: { name: string; status: string; detail?: string }[];
}

async function readiness(): Promise<{ status: number; body: Ready }> {
  const response = await fetch(`${product.url}/readyz`);
  return { status: response.status, body: (await response.json()) as Ready };
}

it('A turn is answered and ended while Temporal is away', async () => {
  const stream = await sendWithoutTemporal('Temporal is away');
  // A load balancer keeps using this API.
  const { status, body } = await readiness();
  expect([status, body.status, body.parts.filter((part) => part.status !== 'ok')]).toEqual([
    200,
    'degraded',
    [expect.objectContaining({ name: 'temporal', detail: expect.stringContaining('Messages are accepted') })],
  ]);
  const { turnId, threadId } = idsOf(stream);
  const log = await collect(stream);
  expect(log.chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
  const turn = await user.turn(turnId);
  expect(turn.status).toBe('completed');
  expect(await user.answerOf(turn)).toBe(expectedText);

  temporal.open();
  await waitFor('the API to be ready again', async () => (await readiness()).body.status === 'ready');
  const next = await user.ask({ content: fake({ tokens: ['Back.'] }), modelId: 'fake-1', threadId });
  expect(await user.answerOf(await user.ended(next.turnId))).toBe('Back.');
  expect(requestsWith(product.provider, 'Temporal is away')).toHaveLength(1);
});

it('The turn of a user with a device is answered while Temporal is away, and ended when it is back', async () => {
  const service = await startFakePushService();
  const { subscription } = service.device('device');
  await user.fetch('/api/push/subscriptions', { method: 'POST', body: subscription });
  const stream = await sendWithoutTemporal('with a device');
  const { turnId } = idsOf(stream);
  const answered = await untilChunk(stream, ({ type }) => type === 'finish-step');
  expect(answered.text).toBe(expectedText);
  expect((await user.turn(turnId)).status).toBe('running');

  temporal.open();
  const rest = await collect(stream);
  expect(rest.chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
  expect(await user.answerOf(await user.turn(turnId))).toBe(expectedText);
  // The workflow found the step done and did not call the model again.
  expect(requestsWith(product.provider, 'with a device')).toHaveLength(1);
  await service.stop();
});

it('An answer begins again if its process is killed before its workflow was started', async () => {
  const stream = await sendWithoutTemporal('killed before');
  const { turnId } = idsOf(stream);
  await untilChunk(stream, ({ type }) => type === 'text-delta');
  await product.process.kill('SIGKILL');
  temporal.open();
  await product.restart();

  const turn = await user.ended(turnId);
  expect(turn.status).toBe('completed');
  expect(await user.answerOf(turn)).toBe(expectedText);
  const log = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(log.chunks.filter(({ type }) => type === 'data-attempt')).toHaveLength(1);
  expect(log.chunks.filter(({ type }) => type === 'finish')).toHaveLength(1);
});

it('An answer whose workflow was not started yet can be stopped', async () => {
  const endless = 10_000;
  const stream = await sendWithoutTemporal('stopped before', endless);
  const { turnId } = idsOf(stream);
  await untilChunk(stream, ({ type }) => type === 'text-delta');
  const response = await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  expect(response.status).toBe(200);
  // The text ends at once, and the turn when Temporal is back.
  const stopped = await untilChunk(stream, ({ type }) => type === 'finish-step');
  expect(stopped.text).not.toContain(`w${endless - 1} `);

  temporal.open();
  const rest = await collect(stream);
  expect(rest.chunks.at(-1)).toMatchObject({ type: 'abort' });
  expect((await user.turn(turnId)).status).toBe('stopped');
});
