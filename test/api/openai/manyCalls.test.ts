import { type CompletionBody, readConversation } from '../../../api/openai/conversation.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';

// A request may have many calls and results. Others must not wait while the server reads them.

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'look_up', arguments: '{}' } });
const answerWith = (count: number, from = 0) => ({
  role: 'assistant' as const,
  tool_calls: Array.from({ length: count }, (_, n) => call(`call_${from + n}`)),
});
const resultOf = (id: string, content = 'It is so.') => ({ role: 'tool' as const, tool_call_id: id, content });
const question = { role: 'user' as const, content: 'How many?' };

async function send(messages: CompletionBody['messages']) {
  const response = await user.fetch('/v1/chat/completions', { method: 'POST', body: { model: 'fake-1', messages } });
  return { status: response.status, body: (await response.json()) as { error?: { code: string } } };
}

test('Calls and results are limited together, whichever message has them', async () => {
  const answers = Array.from({ length: 10 }, (_, n) => answerWith(1_000, n * 1_000));
  const tooMany = await send([question, ...answers, resultOf('call_9999')]);
  expect(tooMany).toMatchObject({ status: 400, body: { error: { code: 'TOO_MANY_TOOL_CALLS' } } });
});

test('As many as are allowed are answered', async () => {
  const answers = Array.from({ length: 5 }, (_, n) => answerWith(1_000, n * 1_000));
  const results = Array.from({ length: 5_000 }, (_, n) => resultOf(`call_${n}`));
  expect(await send([question, ...answers, ...results])).toMatchObject({ status: 200 });
});

test('Results belong to the latest call with their id, of programs that number the calls of each answer from 0', () => {
  const messages = [question, answerWith(1), resultOf('call_0', 'One'), answerWith(1), resultOf('call_0', 'Two')];
  const { history } = readConversation({ model: 'fake-1', messages });
  const calls = history.flatMap(({ parts }) => parts).filter((part) => part.type === 'dynamic-tool');
  expect(calls.map(({ output }) => output)).toEqual(['One', 'Two']);
});
