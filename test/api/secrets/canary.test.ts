import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { mainTaskQueue } from '../../../temporal/taskQueues.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import type { FakeScript } from '../../fakes/script.ts';
import { processesWith } from '../../support/processes.ts';

// Secret values are put into every place that takes one. Nothing that Atrium sends or keeps may contain them.

const { History } = proto.temporal.api.history.v1;
const decoy = `decoy-${randomBytes(6).toString('hex')}`;
/** As awkward as a value can be, so that a value in another spelling is noticed too. */
const named = `canary-${randomBytes(6).toString('hex')}'"\\\n$é`;
const typed = `canary-${randomBytes(6).toString('hex')}&?=/ü`;
/** The part of each value that all spellings but base64 contain. */
const cores = [named, typed].map((value) => /canary-[0-9a-f]{12}/.exec(value)?.[0] ?? '');
const encoded = [named, typed].map((value) => Buffer.from(value).toString('base64').slice(0, 20));
const traces = [...cores, ...encoded];

let product: TestProduct;
let user: ChatUser;
let secretId: string;

/** Cuts a text anywhere, like the tokens of a model. */
const pieces = (text: string) => text.match(/[\s\S]{1,3}/g) ?? [];
const spelled = (value: string) =>
  `${value} | ${JSON.stringify(value)} | ${encodeURIComponent(value)} | ${Buffer.from(value).toString('base64')} end`;

const scripts: Record<string, () => FakeScript> = {
  say: () => ({
    reasoning: pieces(`I think of ${spelled(named)}`),
    tokens: pieces(`${decoy} ${spelled(typed)} ${spelled(named)}`),
  }),
  tools: () => ({
    toolCalls: [
      call('used', 'drive_read', { path: { $secret: secretId } }),
      call('searched', 'drive_search', { query: typed }),
      call('written', 'drive_read', { path: `/${named}` }),
      call('unknown', 'drive_nothing', { path: `/${typed}` }),
      call('listed', 'drive_list', { path: '/' }),
    ],
  }),
  refuse: () => ({ status: 400, body: JSON.stringify({ error: { message: `bad ${named} ${typed}` } }) }),
  break: () => ({ tokens: pieces(named), fail: { how: 'errorEvent', afterDeltas: 4 } }),
};

function call(id: string, name: string, input: object) {
  return { id: `${id}-${randomBytes(4).toString('hex')}`, name, arguments: JSON.stringify(input), pieces: 9 };
}

beforeAll(async () => {
  product = await buildProduct({ ATRIUM_LOG_LEVEL: 'trace' }, ({ body }) => {
    const last = JSON.stringify((body.messages as unknown[] | undefined)?.at(-1) ?? '');
    const name = Object.keys(scripts).find((key) => last.includes(`do: ${key}`));
    return name === undefined ? { tokens: pieces(`done with ${named}`) } : scripts[name]?.();
  });
  user = await product.user();
  const put = await user.fetch(`/api/spaces/${user.spaceId}/secrets/CANARY`, { method: 'PUT', body: { value: named } });
  expect(put.status).toBe(201);
  const form = { name: 'form', field: 'password', value: { deep: [typed] }, spaceId: user.spaceId };
  const stored = await user.fetch('/api/dynamic-ui/secrets', { method: 'POST', body: form });
  ({ secretId } = (await stored.json()) as { secretId: string });
});
afterAll(() => product.close());

/** Every place with its content. */
const places: [string, string][] = [];

/** The names of the places that contain one of these texts. */
const holding = (texts: readonly string[]) =>
  places.filter(([, content]) => texts.some((text) => content.includes(text))).map(([place]) => place);

test('Turns run, and secrets are read and refused', async () => {
  for (const name of Object.keys(scripts)) {
    const stream = await user.send({ content: `do: ${name}`, modelId: 'fake-1', mode: 'work' });
    for await (const _event of stream.events);
    places.push([`stream of ${name}`, stream.raw().toString('utf8')]);
    const turnId = stream.response.headers.get('x-turn-id') ?? '';
    const turn = await user.ended(turnId);
    const replay = await user.open(`/chat/turns/${turnId}/stream`);
    for await (const _event of replay.events);
    places.push([`replay of ${name}`, replay.raw().toString('utf8')]);
    places.push([`messages of ${name}`, JSON.stringify(await user.messages(turn.threadId))]);
    places.push([`turn of ${name}`, JSON.stringify(turn)]);
    places.push([`thread of ${name}`, JSON.stringify(await user.get(`/api/threads/${turn.threadId}`))]);
  }
  const refusals: [string, string, unknown][] = [
    ['PUT', `/api/spaces/${user.spaceId}/secrets/PATH`, { value: named }],
    ['PUT', `/api/spaces/${user.spaceId}/secrets/CANARY`, { value: [named] }],
    ['PUT', `/api/spaces/${user.spaceId}/secrets/CANARY`, { value: `${named}\0` }],
    ['PUT', `/api/spaces/${user.spaceId}/secrets/CANARY`, { value: named, [named]: typed }],
    ['POST', '/api/dynamic-ui/secrets', { name: 'a', field: 'b', value: typed, ttl: 'never' }],
    ['POST', '/api/dynamic-ui/secrets', { name: 'a', field: 'b', value: typed, spaceId: 'spc_absent' }],
  ];
  for (const [method, path, body] of refusals) {
    const response = await user.fetch(path, { method, body });
    expect(response.ok).toBe(false);
    // The answer repeats a name that the client has made up, but never a value.
    places.push([
      `refusal of ${method} ${path}`,
      (await response.text()).replaceAll(JSON.stringify(named).slice(1, -1), ''),
    ]);
  }
  const env = await (await user.fetch(`/api/spaces/${user.spaceId}/secrets/env`)).text();
  expect(env).toContain(cores[0]);
  for (const path of ['secrets', 'audit', 'threads']) {
    places.push([path, JSON.stringify(await user.get(`/api/spaces/${user.spaceId}/${path}`))]);
  }
});

test('workflow histories, the database, logs and processes are collected', async () => {
  await collectHistories();
  await collectDatabase();
  places.push(['log', product.process.log()]);
  places.push(['environment', readFileSync(`/proc/${product.process.pid}/environ`, 'utf8')]);
  places.push(['ps', traces.flatMap((trace) => processesWith(trace)).join('\n')]);
});

test('The search finds a word that is not a secret', () => {
  expect(holding([decoy])).toEqual(
    expect.arrayContaining(['stream of say', 'replay of say', 'messages of say', 'database messages']),
  );
  expect(holding(['streamChat'])).toEqual(expect.arrayContaining(['log']));
  expect(places.filter(([place]) => place.startsWith('history')).length).toBeGreaterThan(3);
  expect(holding([product.environment.config.installation])).toContain('environment');
});

test('No place contains a secret, in any spelling', () => {
  expect(holding(traces)).toEqual([]);
  expect(holding(['[redacted]'])).toEqual(
    expect.arrayContaining(['stream of say', 'stream of tools', 'messages of say', 'messages of tools']),
  );
});

async function collectHistories(): Promise<void> {
  const { temporal, installation } = product.environment.config;
  const connection = await Connection.connect({ address: temporal.address });
  const client = new Client({ connection, namespace: temporal.namespace });
  for await (const { workflowId, runId } of client.workflow.list({
    query: `TaskQueue = '${mainTaskQueue(installation)}'`,
  })) {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    // Payloads are plain JSON, and are in these bytes unchanged.
    places.push([
      `history ${workflowId}`,
      Buffer.from(History.encode(History.create(history)).finish()).toString('utf8'),
    ]);
  }
  await connection.close();
}

async function collectDatabase(): Promise<void> {
  const { pool } = product.environment.database;
  const [tables] = await pool.query(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
  );
  for (const { name } of tables as { name: string }[]) {
    const [rows] = await pool.query(`SELECT * FROM ${name}`);
    const cells = (rows as Record<string, unknown>[]).flatMap((row) => Object.values(row));
    const texts = cells.map((cell) => (Buffer.isBuffer(cell) ? cell.toString('utf8') : String(JSON.stringify(cell))));
    places.push([`database ${name}`, texts.join('\n')]);
  }
}
