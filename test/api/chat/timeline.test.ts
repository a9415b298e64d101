import type { operations } from '../../../api/generated/types.gen.ts';
import { buildChatUser, type ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines } from '../../builders/tools.ts';

type Timeline = operations['getTurnTimeline']['responses'][200]['content']['application/json'];

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({
    ATRIUM_TEMPORAL_UI_URL: 'https://temporal.example.com/ui/?key=secret-of-the-operator',
  });
  user = await product.user();
});
afterAll(() => product.close());

const timelineOf = (turnId: string) => user.get<Timeline>(`/chat/turns/${turnId}/timeline`);

test('A timeline has the calls of a turn, their tokens, times and approvals, and nothing that was said', async () => {
  const path = '/my-secret-plan.txt';
  await user.ask({ content: toolLines([['drive_write', { path, content: 'x' }]]), modelId: 'demo', mode: 'work' });
  const { turnId, threadId } = await user.ask({
    content: `/tool drive_delete ${JSON.stringify({ path })}`,
    modelId: 'demo',
    mode: 'work',
  });
  const waiting = await timelineOf(turnId);
  expect(waiting).toMatchObject({ turnId, threadId, status: 'waiting', endedAt: null, finishReason: null });
  expect(waiting.toolCalls).toMatchObject([
    {
      toolName: 'drive_delete',
      status: 'pending',
      waitsFor: 'approval',
      approval: { decision: null },
      startedAt: null,
    },
  ]);
  expect(waiting.toolCalls[0]?.approval?.deadlineAt).not.toBeNull();
  const call = waiting.toolCalls[0]?.toolCallId;
  await user.fetch(`/chat/turns/${turnId}/approvals/${call}`, { method: 'POST', body: { approved: true } });
  const { usage } = await user.ended(turnId);
  const ended = await timelineOf(turnId);
  expect(ended).toMatchObject({ status: 'completed', finishReason: 'stop', errorCode: null, usage, credits: 0 });
  expect(ended.toolCalls).toMatchObject([
    { toolCallId: call, status: 'succeeded', approval: { decision: 'approved' }, step: 0 },
  ]);
  const times = [ended.queuedAt, ended.startedAt, ended.modelCalls[0]?.startedAt, ended.toolCalls[0]?.calledAt];
  times.push(ended.toolCalls[0]?.answeredAt, ended.toolCalls[0]?.startedAt, ended.toolCalls[0]?.endedAt, ended.endedAt);
  expect(times).not.toContain(null);
  expect(times).toEqual(times.toSorted());
  const steps = ended.modelCalls.filter(({ purpose }) => purpose === 'step');
  expect(steps.map(({ step, status }) => [step, status])).toEqual([
    [0, 'completed'],
    [1, 'completed'],
  ]);
  const used = (pick: (call: Timeline['modelCalls'][number]) => number) =>
    steps.reduce((sum, one) => sum + pick(one), 0);
  expect(used((one) => one.usage.outputTokens)).toBe(usage.outputTokens);
  const all = JSON.stringify(ended);
  expect(all).not.toMatch(/secret|plan/);
  expect(ended.workflow).toEqual({
    id: `turn/${turnId}`,
    url: `https://temporal.example.com/ui/namespaces/default/workflows/turn%2F${turnId}`,
  });
  const other = await buildChatUser(product);
  expect((await other.fetch(`/chat/turns/${turnId}/timeline`)).status).toBe(404);
});
