import * as ai7 from 'ai';
import * as ai5 from 'ai5';
import * as ai6 from 'ai6';
import Ajv2020 from 'ajv/dist/2020.js';
import { loadContract } from '../../../api/frame/contract.ts';
import type { UiChunk } from '../../../models/chat/turnLog/chunks.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { toolLines } from '../../builders/tools.ts';
import type { FakeScript } from '../../fakes/script.ts';
import { collect } from '../../support/sseClient.ts';

/**
 * Checks the chunks of every kind of turn strictly against the contract, and with the schema of each client version.
 */
interface ChunkSchema {
  additionalProperties?: boolean;
  properties: Record<string, ChunkSchema & { const?: string; enum?: string[] }>;
}

const { schemas: contractSchemas = {} } = loadContract().document.components ?? {};
const variants = structuredClone((contractSchemas.TurnChunk as unknown as { oneOf: ChunkSchema[] }).oneOf);
// The contract lets clients expect further fields. Here they are forbidden, so that every field Atrium sends is
// described.
for (const variant of variants) {
  variant.additionalProperties = false;
  if (variant.properties.data !== undefined) variant.properties.data.additionalProperties = false;
}
const types = variants.flatMap(({ properties: { type } }) => type?.const ?? type?.enum ?? []);
const fitsContract = new Ajv2020.default({ strict: false, discriminator: true, allErrors: true })
  .addFormat('date-time', true)
  .compile({
    type: 'object',
    discriminator: { propertyName: 'type' },
    required: ['type'],
    oneOf: variants,
    components: { schemas: contractSchemas },
  });

const schemas = Object.entries({ '5': ai5, '6': ai6, '7': ai7 }).map(([version, { uiMessageChunkSchema }]) => {
  // Version 5 exports the result of a function, 6 and 7 a function. All three can be called.
  const made = uiMessageChunkSchema as unknown as () => { validate?: (value: unknown) => unknown };
  const { validate } = made();
  if (validate === undefined) throw new Error(`The schema of version ${version} cannot be asked.`);
  return { version, validate };
});

let product: TestProduct;
let user: ChatUser;
const seen = new Set<string>();
const flaky = new Map<string, FakeScript[]>();

beforeAll(async () => {
  product = await buildProduct(
    (url) => ({
      ATRIUM_ANTHROPIC_API_KEY: 'fake',
      ATRIUM_ANTHROPIC_BASE_URL: url,
      ATRIUM_OPENAI_API_KEY: 'fake',
      ATRIUM_OPENAI_BASE_URL: url,
      ATRIUM_DEFAULT_MODEL: 'fake-1',
      ATRIUM_MAX_STEPS_PER_TURN: '3',
    }),
    ({ body }) => {
      const said = JSON.stringify(body.messages ?? body.input);
      return [...flaky].find(([message]) => said.includes(message))?.[1].shift();
    },
  );
  user = await product.user();
});
afterAll(() => product.close());

async function check(chunks: UiChunk[]): Promise<void> {
  for (const chunk of chunks) {
    seen.add(chunk.type);
    fitsContract(chunk);
    expect({ chunk, faults: fitsContract.errors }).toEqual({ chunk, faults: null });
    for (const { version, validate } of schemas) {
      const result = (await validate(chunk)) as { success: boolean };
      expect({ chunk, version, accepted: result.success }).toEqual({ chunk, version, accepted: true });
    }
  }
}

const tools = [
  { id: 'a', name: 'search', arguments: '{"q":[1,{"x":null}]}' },
  { id: 'b', name: 'broken', arguments: '{"q":' },
];
const full: FakeScript = { reasoning: ['Hm, ', 'yes.'], tokens: ['An ', 'answer.'] };

test.each<[string, Record<string, unknown>]>([
  ['OpenAI-compatible', { content: fake(full) }],
  ['OpenAI', { content: fake(full), modelId: 'gpt-5.1' }],
  ['Anthropic', { content: fake(full), modelId: 'claude-haiku-4-5' }],
  ['demo', { content: '/think Hm\n/say Yes\n/tool search {"q":1}', modelId: 'demo' }],
  ['OpenAI-compatible with tools', { content: fake({ ...full, toolCalls: tools }) }],
  ['OpenAI with tools', { content: fake({ ...full, toolCalls: tools }), modelId: 'gpt-5.1' }],
  ['Anthropic with tools', { content: fake({ ...full, toolCalls: tools.slice(0, 1) }), modelId: 'claude-haiku-4-5' }],
  ['an answer at its limit', { content: fake({ ...full, finishReason: 'length' }) }],
  ['a filtered answer', { content: fake({ ...full, finishReason: 'content-filter' }) }],
  ['a turn at its limit', { content: toolLines(Array.from({ length: 4 }, () => ['drive_list', {}])), modelId: 'demo' }],
  ['a failure', { content: fake({ status: 400 }) }],
])('A turn sends valid chunks: %s', async (_name, body) => {
  const answer = await user.ask(body);
  expect(answer.complete).toBe(true);
  await check(answer.chunks);
  // Each part begins once, ends once, and has no deltas outside of that.
  const open = new Set<string>();
  for (const chunk of answer.chunks) {
    const [, kind, moment] = /^(text|reasoning)-(start|delta|end)$/.exec(chunk.type) ?? [];
    if (kind === undefined || !('id' in chunk)) continue;
    const name = `${kind} ${chunk.id}`;
    expect([name, moment, open.has(name)]).toEqual([name, moment, moment !== 'start']);
    if (moment === 'start') open.add(name);
    if (moment === 'end') open.delete(name);
  }
  expect([...open]).toEqual([]);
  expect(answer.chunks[0]?.type).toBe('start');
  expect(answer.chunks.filter(({ type }) => ['finish', 'abort', 'error'].includes(type))).toEqual([
    answer.chunks.at(-1),
  ]);
});

test('A turn that waits for an approval and goes on sends valid chunks', async () => {
  const body = {
    content: '/tool drive_delete {"path":"/x"}\n/tool ask_user {"question":"?"}',
    modelId: 'demo',
    mode: 'work',
  };
  const asked = await user.ask(body);
  await check(asked.chunks);
  const { pendingToolCalls } = await user.turn(asked.turnId);
  const [approval, question] = pendingToolCalls.map(({ toolCallId }) => toolCallId);
  await user.fetch(`/chat/turns/${asked.turnId}/approvals/${approval}`, { method: 'POST', body: { approved: false } });
  const { chunks } = await user.ask({ toolResults: [{ toolUseId: question, content: 'yes' }] });
  await check(chunks);
  await check((await collect(await user.open(`/chat/turns/${asked.turnId}/stream`))).chunks);
});

test('A turn with a second attempt sends valid chunks', async () => {
  flaky.set('begin again', [{ ...full, toolCalls: tools.slice(0, 1), fail: { how: 'cut', afterDeltas: 6 } }]);
  const answer = await user.ask({ content: 'begin again' });
  await check(answer.chunks);
  expect(answer.chunks.some(({ type }) => type === 'data-attempt')).toBe(true);
});

test('Turns that are queued, stopped, or rebuilt from the message send valid chunks', async () => {
  const running = await user.send({ content: fake({ ...full, fail: { how: 'stall' } }) });
  const { threadId, turnId } = idsOf(running);
  const begun = await collect(running, ({ text: said }) => said === 'An answer.');
  const queued = await user.send({ content: fake({ ...full, toolCalls: tools.slice(0, 1) }), threadId });
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  const rest = await collect(running);
  await check([...begun.chunks, ...rest.chunks]);
  await check((await collect(queued)).chunks);
  const { sequelize } = product.environment.database;
  await sequelize.query('UPDATE turns SET log_purged_at = NOW(3) WHERE thread_id = ?', { replacements: [threadId] });
  for (const id of [turnId, idsOf(queued).turnId]) {
    const rebuilt = await collect(await user.open(`/chat/turns/${id}/stream`));
    expect(rebuilt.complete).toBe(true);
    await check(rebuilt.chunks);
  }
});

test('The output of a running call is a valid chunk', async () => {
  // As test/activities/tools/computerTools.test.ts gets these chunks from a computer.
  const data = { toolCallId: 'tcl_1', stream: 'stdout', text: 'hello', position: 5 } as const;
  await check([
    { type: 'data-tool-output', transient: true, data },
    { type: 'data-tool-output', transient: true, data: { ...data, isCut: true } },
  ]);
});

test('These tests have seen every type of chunk, except those that no tool or model makes yet', () => {
  const missing = types.filter((type) => !seen.has(type));
  expect(missing).toEqual(['source-url', 'source-document', 'file']);
});

test('The check rejects invalid chunks', async () => {
  await expect(check([{ type: 'text-delta', id: 'a' } as unknown as UiChunk])).rejects.toThrow();
  await expect(check([{ type: 'tool-output-denied', toolCallId: 'a' } as unknown as UiChunk])).rejects.toThrow();
  await expect(check([{ type: 'start-step', extra: 1 } as unknown as UiChunk])).rejects.toThrow();
  for (const { validate } of schemas) {
    expect(await validate({ type: 'text-delta', id: 'a' })).toMatchObject({ success: false });
    expect(await validate({ type: 'never-heard-of' })).toMatchObject({ success: false });
  }
});
