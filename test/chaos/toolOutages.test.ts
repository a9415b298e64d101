import { createLogger } from '../../telemetry/logger.ts';
import { connectTemporal, type TemporalConnection } from '../../temporal/connection.ts';
import { turnWorkflowId } from '../../temporal/workflowIds.ts';
import { buildChatUser, type ChatUser, idsOf } from '../builders/chat.ts';
import { buildIdentity } from '../builders/identity.ts';
import { toolLines, toolOutputs } from '../builders/tools.ts';
import { type FakeMcpServer, startMcpServer } from '../fakes/mcpServer.ts';
import { createTestEnvironment, stackEnvironment, type TestEnvironment } from '../support/environment.ts';
import { type ProductProcess, startProduct } from '../support/product.ts';
import { collect } from '../support/sseClient.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

// Tool calls survive an outage of the database or of the object store.

const token = 'tracker-token-0123456789';
let environment: TestEnvironment;
let wire: TcpProxy;
let store: TcpProxy;
let product: ProductProcess;
let user: ChatUser;
let mcp: FakeMcpServer;
let temporal: TemporalConnection;
beforeAll(async () => {
  environment = await createTestEnvironment();
  mcp = await startMcpServer(token);
  temporal = await connectTemporal(environment.config, createLogger({ level: 'silent' }));
  wire = await startTcpProxy(() => environment.config.database.url);
  store = await startTcpProxy(() => stackEnvironment().ATRIUM_S3_ENDPOINT ?? '');
  const database = new URL(environment.config.database.url);
  database.host = new URL(wire.url).host;
  product = await startProduct(environment, 'both', {
    ATRIUM_DATABASE_URL: database.href,
    ATRIUM_S3_ENDPOINT: store.url,
    ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${mcp.port}`,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '5',
  });
  const identity = await buildIdentity(environment);
  user = await buildChatUser({ identity, url: product.apiUrl });
  const body = { name: 'tracker', url: mcp.url, headers: { authorization: `Bearer ${token}` } };
  await user.fetch(`/api/spaces/${user.spaceId}/mcp-servers`, { method: 'POST', body });
});
afterEach(() => {
  wire.open();
  store.open();
});
afterAll(async () => {
  await product.stop();
  await temporal.close();
  await Promise.all([wire.stop(), store.stop(), mcp.stop()]);
  await environment.close();
});

const work = { modelId: 'demo', mode: 'work' };

/** Waits until a tool call of the turn is in its attempt `times`. */
async function untilTried(turnId: string, times: number): Promise<void> {
  const handle = temporal.client.workflow.getHandle(turnWorkflowId(turnId));
  await waitFor(
    `attempt ${times}`,
    async () => {
      // The workflow starts a moment after the message is accepted.
      const described = await handle.describe().catch(() => undefined);
      return described?.raw.pendingActivities?.some(
        ({ activityType, attempt }) => activityType?.name === 'runTool' && (attempt ?? 0) >= times,
      );
    },
    { timeoutMs: 60_000 },
  );
}

const writeAndRead = [
  '/tool drive_read {"path":"/there.txt"}',
  '/tool drive_write {"path":"/new.txt","content":"new","ifExists":"rename"}',
].join('\n');

/** A turn whose tools have failed because the object store is away. */
async function turnWithoutStore(): Promise<string> {
  await user.ask({ content: toolLines([['drive_write', { path: '/there.txt', content: 'there' }]]), ...work });
  store.shut();
  const { turnId } = idsOf(await user.send({ content: writeAndRead, ...work }));
  await untilTried(turnId, 2);
  return turnId;
}

async function expectDone(turnId: string): Promise<void> {
  const { chunks } = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(toolOutputs(chunks)).toMatchObject([
    { path: '/there.txt' },
    { path: expect.stringMatching(/^\/new/), version: 1 },
  ]);
}

test('Tool calls that need the object store are done when the store is back', async () => {
  const turnId = await turnWithoutStore();
  await untilTried(turnId, 8);
  store.open();
  await expectDone(turnId);
});

test('Tool calls are done when the database is back', async () => {
  const turnId = await turnWithoutStore();
  wire.shut();
  store.open();
  await untilTried(turnId, 10);
  wire.open();
  await expectDone(turnId);
});
