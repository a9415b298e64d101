import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import { z } from 'zod';
import type { ChatUser, ThreadBody } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../builders/product.ts';

/** OpenAI's agents for JavaScript, by chat completions: tools, and agents that hand over to each other. */
let product: TestProduct;
let user: ChatUser;
let runner: Runner;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
  const modelProvider = new OpenAIProvider({ apiKey: user.token, baseURL: `${product.url}/v1`, useResponses: false });
  runner = new Runner({ modelProvider, model: 'fake-1', tracingDisabled: true });
});
afterAll(() => product.close());

const call = (name: string, args: object = {}) => ({ id: 'call-1', name, arguments: JSON.stringify(args) });
const instructionsIn = (request: ReturnType<typeof requestsWith>[number] | undefined) =>
  (request?.body.messages as { content: string }[] | undefined)?.[0]?.content;
const toolsIn = (request: ReturnType<typeof requestsWith>[number] | undefined) =>
  ((request?.body.tools ?? []) as { function: { name: string } }[]).map((one) => one.function.name);

const statusTool = tool({
  name: 'git_status',
  description: 'The state of the repository.',
  parameters: z.object({ path: z.string() }),
  execute: ({ path }) => fake({ tokens: ['All clean.'] }, `Nothing to commit in ${path}`),
});

test('An agent runs its tools, whatever their names are, in one thread', async () => {
  const agent = new Agent({ name: 'Porter', instructions: 'You watch the repository.', tools: [statusTool] });
  const result = await runner.run(agent, fake({ toolCalls: [call('git_status', { path: '/a' })] }, 'Is it clean?'));
  expect(result.finalOutput).toBe('All clean.');
  const [request] = requestsWith(product.provider, 'Nothing to commit in /a');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool']);
  expect([instructionsIn(request), toolsIn(request)]).toEqual(['You watch the repository.', ['git_status']]);
  const { data } = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  expect(data).toHaveLength(1);
});

test('After a handoff the other agent answers, with its own instructions, tools, settings and model', async () => {
  const refunds = new Agent({
    name: 'Refunds',
    instructions: 'You refund.',
    model: 'demo',
    modelSettings: { temperature: 0.1 },
    tools: [tool({ name: 'refund', description: 'Refunds.', parameters: z.object({}), execute: () => 'Done.' })],
  });
  const front = new Agent({ name: 'Front', instructions: 'You hand over.', handoffs: [refunds] });
  const question = fake({ toolCalls: [call('transfer_to_Refunds')] }, 'I want my money back');
  const result = await runner.run(front, question);
  expect(result.lastAgent?.name).toBe('Refunds');
  const { data } = await user.get<{ data: ThreadBody[] }>(`/api/spaces/${user.spaceId}/threads`);
  const turns = await user.get<{ data: { modelId: string }[] }>(`/api/threads/${data[0]?.id}/turns?order=asc`);
  expect(turns.data.map(({ modelId }) => modelId)).toEqual(['fake-1', 'demo']);
});

test('After a handoff to an agent of the same model, the provider gets that agent’s request', async () => {
  const second = new Agent({
    name: 'Second',
    handoffDescription: 'Answers.',
    instructions: 'You are the second.',
    modelSettings: { temperature: 0.1 },
    tools: [statusTool],
  });
  const first = new Agent({ name: 'First', instructions: 'You are the first.', handoffs: [second] });
  await runner.run(first, fake({ toolCalls: [call('transfer_to_Second')] }, 'Pass me on'));
  const request = requestsWith(product.provider, 'Second').at(-1);
  expect([instructionsIn(request), toolsIn(request)]).toEqual(['You are the second.', ['git_status']]);
  expect(request?.body.temperature).toBe(0.1);
});

test('A streamed run ends with the same answer', async () => {
  const agent = new Agent({ name: 'Streamer', instructions: 'You stream.', tools: [statusTool] });
  const question = fake({ toolCalls: [call('git_status', { path: '/b' })] }, 'Stream it');
  const result = await runner.run(agent, question, { stream: true });
  await result.completed;
  expect(result.finalOutput).toBe('All clean.');
});
