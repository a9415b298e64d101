import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls, type UIMessage } from 'ai';
import { AtriumChatTransport } from '../../client/src/index.ts';
import { type ChatUser, textOf } from '../builders/chat.ts';
import { buildProduct, fake, requestsWith, type TestProduct } from '../builders/product.ts';
import { waitFor } from '../support/waitFor.ts';

/**
 * The Chat of `useChat`: with the SDK's own transport, of which only `api` and `headers` are set, and with the
 * transport of `client/`.
 */
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

interface Heard {
  chat: Chat<UIMessage>;
  errors: Error[];
  data: unknown[];
}

type Init = ConstructorParameters<typeof Chat<UIMessage>>[0] & { body?: Record<string, unknown> };

/** The requests of all chats, by method and path. */
const asked: string[] = [];
const fetched: typeof fetch = (input, init) => {
  asked.push(`${init?.method ?? 'GET'} ${new URL(String(input)).pathname}`);
  return fetch(input, init);
};

const transports = {
  'the SDK’s own': (body: Record<string, unknown> | undefined) =>
    new DefaultChatTransport({
      api: `${product.url}/chat/stream`,
      headers: { Authorization: `Bearer ${user.token}` },
      ...(body && { body }),
      fetch: fetched,
    }),
  'the transport of client/': (body: Record<string, unknown> | undefined) =>
    new AtriumChatTransport({ baseUrl: product.url, token: user.token, ...(body && { body }), fetch: fetched }),
};
type Transport = keyof typeof transports;

function buildChatWith(transport: Transport, { body, ...init }: Init = {}): Heard {
  const errors: Error[] = [];
  const data: unknown[] = [];
  const chat = new Chat<UIMessage>({
    ...init,
    transport: transports[transport](body),
    onError: (error) => errors.push(error),
    onData: (part) => data.push(part),
  });
  return { chat, errors, data };
}

const texts = (chat: Chat<UIMessage>) =>
  chat.messages.map(({ parts }) => textOf(parts as unknown as Parameters<typeof textOf>[0]));

/** The thread of a chat. */
async function threadOf(chat: Chat<UIMessage>) {
  const metadata = chat.messages.at(-1)?.metadata as { threadId: string };
  return { id: metadata.threadId, messages: await user.messages(metadata.threadId) };
}

describe.each(Object.keys(transports) as Transport[])('%s', (transport) => {
  const buildChat = (init?: Init) => buildChatWith(transport, init);

  test('A chat has two messages and their answers, as the thread has them', async () => {
    const { chat, errors, data } = buildChat();
    await chat.sendMessage({ text: fake({ tokens: ['First ', 'answer'] }) });
    expect(chat.status).toBe('ready');
    await chat.sendMessage({ text: fake({ reasoning: ['Hm.'], tokens: ['Second ', 'answer'], intervalMs: 5 }) });
    expect([chat.status, errors]).toEqual(['ready', []]);
    expect(texts(chat).filter((_, at) => at % 2 === 1)).toEqual(['First answer', 'Second answer']);

    const { messages } = await threadOf(chat);
    expect(messages.map(({ id, role }) => ({ id, role }))).toEqual(chat.messages.map(({ id, role }) => ({ id, role })));
    expect(messages.map(({ parts }) => textOf(parts))).toEqual(texts(chat));
    expect(chat.lastMessage?.metadata).toMatchObject({ status: 'completed', usage: { inputTokens: 10 } });
    expect(data).toMatchObject([{ data: { status: 'running' } }, { data: { status: 'completed' } }, {}, {}]);
  });

  test('Regenerating replaces the last answer, in the chat and in the thread', async () => {
    const { chat, errors } = buildChat();
    const text = `Once more, please, with ${transport}`;
    await chat.sendMessage({ text });
    const before = chat.lastMessage?.id;
    await chat.regenerate();
    expect([chat.status, errors]).toEqual(['ready', []]);
    expect(chat.messages).toHaveLength(2);
    expect(chat.lastMessage?.id).not.toBe(before);
    const { messages } = await threadOf(chat);
    expect(messages.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
    expect(requestsWith(product.provider, text)).toHaveLength(2);
  });

  test('a page that is loaded again in the middle of an answer resumes it', async () => {
    const first = buildChat();
    const text = fake({ tokens: 60, intervalMs: 20 });
    const sending = first.chat.sendMessage({ text });
    await waitFor('the answer to begin', () => texts(first.chat)[1]);
    const stored = structuredClone(first.chat.messages.slice(0, 1));

    const second = buildChat({ id: first.chat.id, messages: stored });
    await second.chat.resumeStream();
    await sending;
    expect([second.chat.status, second.errors]).toEqual(['ready', []]);
    expect(texts(second.chat)).toEqual(texts(first.chat));
    expect(texts(second.chat)[1]?.split(' ').filter(Boolean)).toHaveLength(60);
    expect(second.chat.lastMessage?.id).toBe(first.chat.lastMessage?.id);

    // No turn runs any more, and having nothing to resume is not an error.
    await second.chat.resumeStream();
    expect([second.chat.status, second.errors, second.chat.messages.length]).toEqual(['ready', [], 2]);
  });

  test('a page with a new chat finds nothing to resume, which is not an error', async () => {
    const { chat, errors } = buildChat();
    await chat.resumeStream();
    expect([chat.status, errors, chat.messages]).toEqual(['ready', [], []]);
  });

  test('Resuming with a part of the answer at hand does not double that part', async () => {
    const first = buildChat();
    const sending = first.chat.sendMessage({ text: fake({ tokens: 60, intervalMs: 20 }) });
    await waitFor('a part of the answer', () => (texts(first.chat)[1] ?? '').length > 20);
    const second = buildChat({ id: first.chat.id, messages: structuredClone(first.chat.messages) });
    await second.chat.resumeStream();
    await sending;
    expect(texts(second.chat)).toEqual(texts(first.chat));
    expect(second.errors).toEqual([]);
  });

  test('a failed turn is an error with its sentence, and the next message goes through', async () => {
    const { chat, errors } = buildChat();
    await chat.sendMessage({ text: fake({ status: 400 }) });
    expect(chat.status).toBe('error');
    expect(errors.map(({ message }) => message)).toEqual(['The model provider refused the request.']);
    chat.clearError();
    await chat.sendMessage({ text: 'And now?' });
    expect([chat.status, texts(chat).at(-1)]).toEqual(['ready', 'Hello from the fake provider.']);
  });

  test('a refused request is an error too', async () => {
    const { chat, errors } = buildChat();
    await chat.sendMessage({ text: 'x' }, { body: { modelId: 'no-such-model' } });
    expect(chat.status).toBe('error');
    expect(errors).toHaveLength(1);
  });

  test('The output of a client’s tool is sent by itself, and the same message goes on', async () => {
    const { chat, errors } = buildChat({
      body: { modelId: 'demo', clientTools: [{ name: 'getBattery', inputSchema: { type: 'object' } }] },
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: ({ toolCall: { toolCallId } }) =>
        void chat.addToolOutput({ tool: 'getBattery' as never, toolCallId, output: { percent: 80 } as never }),
    });
    asked.length = 0;
    await chat.sendMessage({ text: '/tool getBattery {}' });
    await waitFor('the answer', () => texts(chat)[1]?.includes('percent') && chat.status === 'ready');
    expect([errors, chat.messages.length]).toEqual([[], 2]);
    expect(texts(chat)[1]).toBe('getBattery: {"percent":80}');
    const { messages } = await threadOf(chat);
    expect(messages[1]?.id).toBe(chat.lastMessage?.id);
    expect(messages[1]?.parts.map(({ type }) => type)).toEqual(chat.lastMessage?.parts.map(({ type }) => type));
    // Once for the message, and once for the output of the tool.
    expect(asked).toEqual(['POST /chat/stream', 'POST /chat/stream']);
  });

  test('Loading an idle chat makes one request, and none about a turn', async () => {
    const { chat, errors } = buildChat();
    await chat.sendMessage({ text: 'Only this' });
    asked.length = 0;
    await chat.resumeStream();
    expect([chat.status, errors]).toEqual(['ready', []]);
    expect(asked).toEqual([`GET /chat/stream/${chat.id}/stream`]);
  });
});

test('Stopping in the SDK’s own transport only hangs up: the turn goes on, and can be resumed', async () => {
  const { chat, errors } = buildChatWith('the SDK’s own');
  const sending = chat.sendMessage({ text: fake({ tokens: 60, intervalMs: 20 }) });
  await waitFor('the answer to begin', () => texts(chat)[1]);
  await chat.stop();
  await sending;
  await chat.resumeStream();
  expect([chat.status, errors]).toEqual(['ready', []]);
  expect(texts(chat)[1]?.split(' ').filter(Boolean)).toHaveLength(60);
});
