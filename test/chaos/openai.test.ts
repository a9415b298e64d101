import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import type { ChatUser } from '../builders/chat.ts';
import { onePixelPng } from '../builders/files.ts';
import { buildProduct, fake, requestsWith, rolesOf, type TestProduct } from '../builders/product.ts';
import { inFull } from '../support/inFull.ts';
import { hurriedSweeper } from '../support/productSettings.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcpProxy.ts';
import { waitFor } from '../support/waitFor.ts';

const full = inFull('openai');

// The process is killed while OpenAI's own client reads an answer.

const folder = mkdtempSync(join(tmpdir(), 'atrium-models-'));
let product: TestProduct;
let proxy: TcpProxy;
let user: ChatUser;
beforeAll(async () => {
  const file = join(folder, 'models.yaml');
  const model = { id: 'fake-1', provider: 'compatible', model: 'fake-1', capabilities: { images: true } };
  writeFileSync(file, JSON.stringify({ models: [model] }));
  product = await buildProduct({
    ...hurriedSweeper,
    ATRIUM_MODELS_FILE: file,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
  proxy = await startTcpProxy(() => product.url);
  user = await product.user();
});
afterAll(async () => {
  await proxy.stop();
  await product.close();
  rmSync(folder, { recursive: true });
});

const clientOf = () => new OpenAI({ apiKey: user.token, baseURL: `${product.url}/v1` });
const model = 'fake-1';
const slow = (text: string) => fake({ tokens: 150, intervalMs: 20 }, text);
const wholeAnswer = Array.from({ length: 150 }, (_, index) => `w${index} `).join('');

full.test('A kill breaks off the stream but not the turn, and the thread goes on', async () => {
  const metadata = { thread_id: 'survivor' };
  const messages = [{ role: 'user' as const, content: slow('Count, please.') }];
  const stream = await clientOf().chat.completions.create({ model, messages, metadata, stream: true });
  let turnId = '';
  let text = '';
  let isKilled = false;
  const reading = async () => {
    for await (const { id, choices } of stream) {
      turnId = id.replace('chatcmpl-', '');
      text += choices[0]?.delta.content ?? '';
      if (text.split(' ').length < 10 || isKilled) continue;
      isKilled = true;
      await product.process.kill('SIGKILL');
    }
  };
  // The client may or may not throw, because no finish_reason came.
  await reading().catch(() => undefined);
  expect(text.length).toBeLessThan(wholeAnswer.length);
  await product.restart();
  const turn = await user.ended(turnId);
  expect(turn.status).toBe('completed');
  expect(await user.answerOf(turn)).toBe(wholeAnswer);

  const next = [{ role: 'user' as const, content: 'And now?' }];
  const answer = await clientOf().chat.completions.create({ model, messages: next, metadata });
  expect(answer.choices[0]?.finish_reason).toBe('stop');
  const [request] = requestsWith(product.provider, 'And now?');
  expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'user']);
  expect(JSON.stringify(request?.body.messages)).toContain(wholeAnswer.trim());
});

full.test.each(['SIGKILL', 'SIGTERM'] as const)(
  'A client that waits for a whole answer gets it from the same turn despite a %s',
  async (signal) => {
    const client = new OpenAI({ apiKey: user.token, baseURL: `${proxy.url}/v1`, maxRetries: 10 });
    const content = fake({ tokens: 150, intervalMs: 20 }, `Count over ${signal}.`);
    const answering = client.chat.completions.create({ model, messages: [{ role: 'user', content }] }).withResponse();
    const asked = () => requestsWith(product.provider, `Count over ${signal}.`);
    await waitFor('the first words', () => (asked()[0]?.deltasSent ?? 0) > 20);
    await product.process.kill(signal);
    await product.restart();
    const { data, response } = await answering;
    expect(data.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: wholeAnswer } });
    const threadId = response.headers.get('x-thread-id') ?? '';
    expect((await user.messages(threadId)).map(({ role }) => role)).toEqual(['user', 'assistant']);
    const { data: threads } = await user.get<{ data: { title: string }[] }>(`/api/spaces/${user.spaceId}/threads`);
    expect(threads.filter(({ title }) => title.startsWith(`Count over ${signal}.`))).toHaveLength(1);
  },
);

full.test('The results of a client’s tools are answered once, although the process is killed meanwhile', async () => {
  const client = new OpenAI({ apiKey: user.token, baseURL: `${proxy.url}/v1`, maxRetries: 10 });
  const toolCalls = [{ id: 'call-1', name: 'look_up', arguments: '{}' }];
  const tools = [{ type: 'function' as const, function: { name: 'look_up', parameters: { type: 'object' } } }];
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: fake({ toolCalls }, 'Look it up') }];
  const [asked] = (await client.chat.completions.create({ model, messages, tools })).choices;
  // Nothing of the turn is left when its client has the calls.
  await product.process.kill('SIGKILL');
  await product.restart();
  messages.push(asked?.message as OpenAI.ChatCompletionMessage, {
    role: 'tool',
    tool_call_id: asked?.message.tool_calls?.[0]?.id ?? '',
    content: slow('The result over a kill'),
  });
  const answering = client.chat.completions.create({ model, messages, tools }).withResponse();
  const requests = () => requestsWith(product.provider, 'The result over a kill');
  await waitFor('the first words', () => (requests()[0]?.deltasSent ?? 0) > 20);
  await product.process.kill('SIGKILL');
  await product.restart();
  const { data, response } = await answering;
  expect(data.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: wholeAnswer } });
  const stored = await user.messages(response.headers.get('x-thread-id') ?? '');
  expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant']);
  const again = await client.chat.completions.create({ model, messages, tools });
  expect(again.choices).toEqual(data.choices);
});

full.test('A turn whose client and process died together stops after a while', async () => {
  const content = fake({ tokens: 5_000, intervalMs: 50 }, 'For nobody');
  const stream = await clientOf().chat.completions.create({
    model,
    messages: [{ role: 'user', content }],
    stream: true,
  });
  let turnId = '';
  for await (const { id } of stream) {
    turnId = id.replace('chatcmpl-', '');
    break;
  }
  await product.process.kill('SIGKILL');
  const { pool } = product.environment.database;
  const attended = async () => {
    const sql = 'SELECT attended_until AS until FROM completion_requests WHERE turn_id = ?';
    const [rows] = await pool.query(sql, [turnId]);
    return (rows as { until: Date }[])[0]?.until.getTime() ?? Number.NaN;
  };
  // The turn would run for four minutes, and the row lets it run for two.
  expect(await attended()).toBeLessThan(Date.now() + 121_000);
  const sql = 'UPDATE completion_requests SET attended_until = NOW(3) - INTERVAL 1 SECOND WHERE turn_id = ?';
  await pool.query(sql, [turnId]);
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
});

test('A picture is sent to a model that sees images', async () => {
  const url = `data:image/png;base64,${onePixelPng.toString('base64')}`;
  const content = [
    { type: 'text' as const, text: 'What is in this picture?' },
    { type: 'image_url' as const, image_url: { url } },
  ];
  const answer = await clientOf().chat.completions.create({ model, messages: [{ role: 'user', content }] });
  expect(answer.choices[0]?.finish_reason).toBe('stop');
  const [request] = requestsWith(product.provider, 'What is in this picture?');
  expect(JSON.stringify(request?.body.messages)).toContain(url);
});
