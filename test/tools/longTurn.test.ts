import { createLogger } from '../../telemetry/logger.ts';
import { connectTemporal } from '../../temporal/connection.ts';
import { turnWorkflowId } from '../../temporal/workflowIds.ts';
import type { ChatUser } from '../builders/chat.ts';
import { buildProduct, type TestProduct } from '../builders/product.ts';
import { toolOutputs } from '../builders/tools.ts';

const calls = 100;

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ATRIUM_MAX_STEPS_PER_TURN: '150' }, ({ body }) => {
    const step = (body.messages as { role: string }[]).filter(({ role }) => role === 'assistant').length;
    if (step >= calls) return { tokens: ['Done.'] };
    return { toolCalls: [{ id: `c${step}`, name: 'drive_list', arguments: JSON.stringify({ limit: step + 1 }) }] };
  });
  user = await product.user();
});
afterAll(() => product.close());

test('a turn of 100 tool calls, one a step, has at most 2,000 events in its history', async () => {
  const { turnId, text, chunks } = await user.ask({ content: 'a hundred' });
  expect([text, toolOutputs(chunks).length]).toEqual(['Done.', calls]);
  const { config } = product.environment;
  const { client, close } = await connectTemporal(config, createLogger({ level: 'silent' }));
  const { historyLength } = await client.workflow.getHandle(turnWorkflowId(turnId)).describe();
  await close();
  expect(historyLength).toBeGreaterThan(calls);
  expect(historyLength).toBeLessThanOrEqual(2_000);
});
