import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolOutputs } from '../../builders/tools.ts';
import type { FakeScript } from '../../fakes/script.ts';

let product: TestProduct;
let user: ChatUser;
const script: { respond: (step: number) => FakeScript } = { respond: () => ({}) };

beforeAll(async () => {
  product = await buildProduct(
    { ATRIUM_MAX_TOOL_CALLS_PER_TURN: '40', ATRIUM_MAX_STEPS_PER_TURN: '30' },
    ({ body }) => {
      const messages = body.messages as { role: string }[];
      return script.respond(messages.filter(({ role }) => role === 'assistant').length);
    },
  );
  user = await product.user();
});
afterAll(() => product.close());

const list = (id: string, input: object) => ({ id, name: 'drive_list', arguments: JSON.stringify(input) });

test('A turn ends when the model repeats the same call again and again', async () => {
  script.respond = (step) => ({ tokens: [], toolCalls: [list(`c${step}`, { path: '/' })] });
  const { chunks, turnId } = await user.ask({ content: 'loop' });
  expect(chunks.slice(-2)).toMatchObject([
    { type: 'data-limit', data: { limit: 'tool-loop', code: 'TOOL_LOOP' } },
    { type: 'error', code: 'TOOL_LOOP' },
  ]);
  expect(await user.turn(turnId)).toMatchObject({ status: 'failed', error: { code: 'TOOL_LOOP' } });
  const outputs = toolOutputs(chunks);
  expect(outputs).toHaveLength(12);
  expect(outputs.at(-1)).toBe('error: The turn ended before this call finished.');
});

test('Different calls are no loop, and the limit of steps ends the turn', async () => {
  script.respond = (step) => ({ toolCalls: [list(`c${step}`, { path: '/', limit: step + 1 })] });
  const { chunks } = await user.ask({ content: 'steps' });
  expect(chunks.slice(-2)).toMatchObject([
    { type: 'data-limit', data: { limit: 'steps' } },
    { type: 'error', code: 'STEP_LIMIT' },
  ]);
  expect(toolOutputs(chunks).filter((output) => typeof output === 'object')).toHaveLength(30);
});

test('Too many calls end the turn before any call of the last step runs', async () => {
  script.respond = (step) => ({
    toolCalls: Array.from({ length: step === 0 ? 30 : 11 }, (_, at) => list(`${step}-${at}`, { limit: at + 1 })),
  });
  const { chunks, threadId } = await user.ask({ content: 'many' });
  expect(chunks.slice(-2)).toMatchObject([
    { type: 'data-limit', data: { limit: 'tool-calls' } },
    { type: 'error', code: 'TOOL_CALL_LIMIT' },
  ]);
  const outputs = toolOutputs(chunks);
  expect(outputs.filter((output) => typeof output === 'object')).toHaveLength(30);
  expect(outputs.slice(30)).toEqual(
    Array.from({ length: 11 }, () => 'error: The turn ended before this call finished.'),
  );
  // The thread can still be used.
  script.respond = () => ({});
  expect((await user.ask({ content: 'and now?', threadId })).text).toBe('Hello from the fake provider.');
});
