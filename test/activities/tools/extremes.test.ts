import { readFileSync, writeFileSync } from 'node:fs';
import { createLogger } from '../../../telemetry/logger.ts';
import { connectTemporal } from '../../../temporal/connection.ts';
import { turnWorkflowId } from '../../../temporal/workflowIds.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { type FakeMcpServer, startMcpServer } from '../../fakes/mcpServer.ts';
import type { FakeScript } from '../../fakes/script.ts';
import { sizeOf } from '../../support/size.ts';

/**
 * The largest number of calls that a turn may make, and the largest results. Both are small by default and at full size
 * with `TOOL_CALLS=1000 TOOL_RESULT_MB=100`.
 */
const maxCalls = sizeOf('TOOL_CALLS', 100);
const resultBytes = sizeOf('TOOL_RESULT_MB', 5) * 1_000_000;
const callsPerStep = 50;

const token = 'tracker-token-0123456789';
let mcp: FakeMcpServer;
let product: TestProduct;
let user: ChatUser;
const script: { respond: (step: number) => FakeScript } = { respond: () => ({}) };

beforeAll(async () => {
  mcp = await startMcpServer(token);
  product = await buildProduct(
    {
      ATRIUM_MAX_TOOL_CALLS_PER_TURN: String(maxCalls),
      ATRIUM_MAX_STEPS_PER_TURN: '150',
      ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${mcp.port}`,
    },
    ({ body }) =>
      script.respond((body.messages as { role: string }[]).filter(({ role }) => role === 'assistant').length),
  );
  user = await product.user();
  const headers = { authorization: `Bearer ${token}` };
  const body = { name: 'tracker', url: mcp.url, headers };
  await user.fetch(`/api/spaces/${user.spaceId}/mcp-servers`, { method: 'POST', body });
});
afterAll(async () => {
  await product.close();
  await mcp.stop();
});

/** Resets the peak of Atrium's memory. Linux keeps the highest peak, which would hide later ones. */
function resetPeak(): void {
  writeFileSync(`/proc/${product.process.pid}/clear_refs`, '5');
}

/** The most memory that Atrium has held since the last reset, in MB. */
function peakMb(): number {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${product.process.pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1_000);
}

const list = (id: string) => ({
  id,
  name: 'drive_list',
  arguments: JSON.stringify({ limit: (Number(id) % 500) + 1 }),
});
const lists = (from: number, count: number) => Array.from({ length: count }, (_, at) => list(String(from + at)));
const succeeded = (outputs: unknown[]) => outputs.filter((output) => typeof output === 'object');

/** Fails if `work` raises Atrium's memory by more than `mostMb`. */
async function within(mostMb: number, work: () => Promise<void>): Promise<void> {
  resetPeak();
  const before = peakMb();
  await work();
  expect(peakMb() - before).toBeLessThan(mostMb);
}

test('The first call over the limit of a turn ends it, and the results of all earlier calls are kept', async () => {
  script.respond = (step) => ({ toolCalls: lists(step * callsPerStep, callsPerStep) });
  await within(300, async () => {
    const { chunks, turnId } = await user.ask({ content: 'step by step' });
    expect(chunks.slice(-2)).toMatchObject([
      { type: 'data-limit', data: { limit: 'tool-calls' } },
      { type: 'error', code: 'TOOL_CALL_LIMIT' },
    ]);
    expect(await user.turn(turnId)).toMatchObject({ status: 'failed', error: { code: 'TOOL_CALL_LIMIT' } });
    expect(succeeded(toolOutputs(chunks))).toHaveLength(maxCalls);
  });
});

test('A turn of 100 tool calls in 100 steps has at most 2,000 events in its history', async () => {
  script.respond = (step) => (step < 100 ? { toolCalls: lists(step, 1) } : { tokens: ['Done.'] });
  const { turnId, text, chunks } = await user.ask({ content: 'one a step' });
  expect([text, succeeded(toolOutputs(chunks)).length]).toEqual(['Done.', 100]);
  const { client, close } = await connectTemporal(product.environment.config, createLogger({ level: 'silent' }));
  const { historyLength } = await client.workflow.getHandle(turnWorkflowId(turnId)).describe();
  await close();
  expect(historyLength).toBeGreaterThan(100);
  expect(historyLength).toBeLessThanOrEqual(2_000);
});

test('A turn can make all its calls in one step, but not one more', async () => {
  await within(300, async () => {
    script.respond = (step) => (step === 0 ? { toolCalls: lists(0, maxCalls) } : { tokens: ['Done.'] });
    const { chunks, text } = await user.ask({ content: 'at once' });
    expect([text, succeeded(toolOutputs(chunks)).length]).toEqual(['Done.', maxCalls]);
    script.respond = () => ({ toolCalls: lists(0, maxCalls + 1) });
    const over = await user.ask({ content: 'one more' });
    expect(over.chunks.at(-1)).toMatchObject({ type: 'error', code: 'TOOL_CALL_LIMIT' });
    expect(succeeded(toolOutputs(over.chunks))).toEqual([]);
  });
});

/**
 * Copies of a result that are in memory at one time: the received bytes, their text, the parsed value, the redacted
 * value, the stored bytes.
 */
const copies = 8;

test('Eight results of the largest size side by side are read one by one', async () => {
  await within((copies * resultBytes) / 1_000_000 + 200, async () => {
    const one = await user.ask({ content: toolLines([['mcp_tracker_dump', { bytes: resultBytes }]]), modelId: 'demo' });
    expect(toolOutputs(one.chunks)).toMatchObject([{ isLarge: true, bytes: resultBytes, file: expect.anything() }]);
    const calls = Array.from({ length: 8 }, () => `/tool mcp_tracker_dump {"bytes":${resultBytes}}`);
    const eight = await user.ask({ content: calls.join('\n'), modelId: 'demo' });
    const large = expect.objectContaining({ isLarge: true, bytes: resultBytes, file: expect.anything() });
    expect(toolOutputs(eight.chunks)).toEqual(calls.map(() => large));
  });
});

test('A server that sends more than 100 MB is cut off, and the model is told', async () => {
  await within(1_000, async () => {
    const { chunks } = await user.ask({
      content: toolLines([['mcp_tracker_dump', { bytes: 150_000_000 }]]),
      modelId: 'demo',
    });
    expect(toolOutputs(chunks)).toEqual(['error: The result is larger than 100 MB. Ask for less of it.']);
  });
});
