import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, requestsWith, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { type FakeMcpServer, startMcpServer } from '../../fakes/mcpServer.ts';
import { inFull } from '../../support/inFull.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('mcp');

const token = 'tracker-token-0123456789';
let mcp: FakeMcpServer;
/** Another server, with the same tools. */
let other: FakeMcpServer;
let product: TestProduct;
let user: ChatUser;

beforeAll(async () => {
  [mcp, other] = await Promise.all([startMcpServer(token), startMcpServer(token)]);
  product = await buildProduct({
    ATRIUM_EGRESS_ALLOW_INTERNAL: `127.0.0.1:${mcp.port},127.0.0.1:${other.port}`,
    ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2',
  });
  user = await product.user();
  expect((await add({})).status).toBe(201);
});
afterAll(async () => {
  await product.close();
  await Promise.all([mcp.stop(), other.stop()]);
});

interface ServerBody {
  id: string;
  name: string;
  status: string;
  failure: string | null;
  tools: { name: string }[];
}

const path = () => `/api/spaces/${user.spaceId}/mcp-servers`;
const servers = async () => (await user.get<{ data: ServerBody[] }>(path())).data;

function add(fields: object, as = user, key?: string) {
  const body = { name: 'tracker', url: mcp.url, headers: { authorization: `Bearer ${token}` }, ...fields };
  return as.fetch(path(), { method: 'POST', body, ...(key !== undefined && { headers: { 'idempotency-key': key } }) });
}

async function call(name: string, input: object, mode = 'work') {
  const answer = await user.ask({ content: toolLines([[name, input]]), modelId: 'demo', mode });
  return { ...answer, output: toolOutputs(answer.chunks)[0] };
}

test('Tools of an MCP server are offered as the mode allows, and run', async () => {
  const offered = async (mode: string) => {
    await user.ask({ content: `tools in ${mode}`, modelId: 'fake-1', mode });
    const [request] = requestsWith(product.provider, `tools in ${mode}`);
    return ((request?.body.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);
  };
  expect(await offered('work')).toEqual(
    expect.arrayContaining([
      'drive_read',
      'mcp_tracker_search_issues',
      'mcp_tracker_create_issue',
      'mcp_tracker_close_all',
    ]),
  );
  const reading = await offered('ask');
  expect(reading).toContain('mcp_tracker_search_issues');
  expect(reading).not.toContain('mcp_tracker_create_issue');
  expect((await call('mcp_tracker_search_issues', { query: 'login' }, 'ask')).output).toBe('2 issues about login');
  expect(await servers()).toMatchObject([
    {
      name: 'tracker',
      status: 'ok',
      tools: expect.arrayContaining([expect.objectContaining({ name: 'search_issues', isReadOnly: true })]),
    },
  ]);
});

test('The model gets a tool’s refusal as an error, and the token is never shown', async () => {
  expect((await call('mcp_tracker_create_issue', { title: '' })).output).toBe('error: A title is needed.');
  expect((await call('mcp_tracker_create_issue', { title: 'A' })).output).toMatch(/^created A with (?!tracker-token)/);
  expect((await call('mcp_tracker_create_issue', {})).output).toMatch(/^error: /);
  expect(JSON.stringify(await servers())).not.toContain(token);
  expect(product.process.log()).not.toContain(token);
  const [rows] = await product.environment.database.pool.query('SELECT * FROM mcp_servers');
  expect(JSON.stringify(rows)).not.toContain(token);
});

test.each(['close_all', 'unannotated'])(
  'A tool that is marked destructive or not marked at all waits for approval: %s',
  async (tool) => {
    const { turnId, chunks } = await call(`mcp_tracker_${tool}`, {});
    const asked = chunks.find((chunk) => chunk.type === 'data-approval');
    expect([asked?.type, await mcp.runsOf(tool)]).toEqual(['data-approval', 0]);
    const { pendingToolCalls } = await user.turn(turnId);
    const decide = `/chat/turns/${turnId}/approvals/${pendingToolCalls[0]?.toolCallId}`;
    await user.fetch(decide, { method: 'POST', body: { approved: true } });
    expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
    expect(await mcp.runsOf(tool)).toBe(1);
  },
);

/** Lets the agent call a tool that waits for approval. */
async function asking(tool: string) {
  const { turnId, chunks } = await call(tool, {});
  const [asked] = chunks.flatMap((chunk) => (chunk.type === 'data-approval' ? [chunk.data] : []));
  const { pendingToolCalls } = await user.turn(turnId);
  return { turnId, asked, pending: pendingToolCalls };
}

/** Approves the call, and returns its result after the turn has ended. */
async function approved({ turnId, asked }: Awaited<ReturnType<typeof asking>>) {
  const decide = `/chat/turns/${turnId}/approvals/${asked?.toolCallId}`;
  expect((await user.fetch(decide, { method: 'POST', body: { approved: true } })).status).toBe(200);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  return toolOutputs((await collect(await user.open(`/chat/turns/${turnId}/stream`))).chunks)[0];
}

test('The stream, the turn and the timeline show the host of a call that waits for approval', async () => {
  const asked = await asking('mcp_tracker_close_all');
  const host = `127.0.0.1:${mcp.port}`;
  expect(asked).toMatchObject({ asked: { host }, pending: [{ host }] });
  const { toolCalls } = await user.get<{ toolCalls: unknown[] }>(`/chat/turns/${asked.turnId}/timeline`);
  expect(toolCalls).toMatchObject([{ toolName: 'mcp_tracker_close_all', host }]);
  await user.fetch(`/chat/turns/${asked.turnId}/stop`, { method: 'POST' });
  await user.ended(asked.turnId);
});

test('A call approved for one server is not sent to another server of the same name', async () => {
  const name = 'swapped';
  const { id } = (await (await add({ name })).json()) as ServerBody;
  const asked = await asking('mcp_swapped_close_all');
  const before = await Promise.all([mcp.runsOf('close_all'), other.runsOf('close_all')]);
  expect((await user.fetch(`${path()}/${id}`, { method: 'DELETE' })).status).toBe(204);
  const next = (await (await add({ name, url: other.url })).json()) as ServerBody;
  expect(next).toMatchObject({ name, status: 'ok' });
  expect(await approved(asked)).toMatch(/^error: TOOL_CHANGED: .*nothing was sent/);
  expect(await Promise.all([mcp.runsOf('close_all'), other.runsOf('close_all')])).toEqual(before);
  // A call that is approved for the new server runs there.
  expect(await approved(await asking('mcp_swapped_close_all'))).toBe('closed');
  expect(await other.runsOf('close_all')).toBe(1);
  await user.fetch(`${path()}/${next.id}`, { method: 'DELETE' });
});

test('A call does not run if its tool’s description has changed since the approval was asked for', async () => {
  const asked = await asking('mcp_tracker_close_all');
  const before = await mcp.runsOf('close_all');
  const [tracker] = (await servers()).filter(({ name }) => name === 'tracker');
  const check = () => user.fetch(`${path()}/${tracker?.id}/check`, { method: 'POST' });
  await mcp.become('reword');
  expect((await check()).status).toBe(200);
  expect(await approved(asked)).toMatch(/^error: TOOL_CHANGED: /);
  expect(await mcp.runsOf('close_all')).toBe(before);
  await mcp.become('serve');
  expect((await check()).status).toBe(200);
});

test('A tool list stored by an earlier version, without defaults, still asks for approval', async () => {
  const { pool } = product.environment.database;
  const [[row]] = (await pool.query("SELECT tools FROM mcp_servers WHERE name = 'tracker'")) as unknown as [
    { tools: string }[],
  ];
  const old = (JSON.parse(row?.tools ?? '[]') as Record<string, unknown>[]).map(({ mayDestroy: _, ...tool }) => ({
    ...tool,
    isDestructive: false,
  }));
  await pool.query("UPDATE mcp_servers SET tools = ? WHERE name = 'tracker'", [JSON.stringify(old)]);
  const { chunks } = await call('mcp_tracker_unannotated', {});
  expect(chunks.some((chunk) => chunk.type === 'data-approval')).toBe(true);
  await pool.query('UPDATE mcp_servers SET listed_at = ?', [new Date(0)]);
});

test('A large result is kept as a file', async () => {
  expect((await call('mcp_tracker_dump', {})).output).toMatchObject({ isLarge: true, bytes: 200_000 });
});

test('An endless event during a call is cut off, and the call succeeds', async () => {
  await mcp.become('flood');
  // The server answers when its flood has been cut off.
  expect((await call('mcp_tracker_search_issues', { query: 'water' })).output).toBe('2 issues about water');
  await mcp.become('serve');
});

test('A tool that must not be repeated is not repeated after a kill, and the model is told', async () => {
  const content = toolLines([['mcp_tracker_slow_write', {}]]);
  const stream = await user.send({ content, modelId: 'demo', mode: 'work' });
  await waitFor('the tool to run', async () => (await mcp.runsOf('slow_write')) > 0);
  await product.process.kill('SIGKILL');
  await product.restart();
  const { turnId } = idsOf(stream);
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  const { chunks } = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(toolOutputs(chunks)).toEqual([expect.stringContaining('It is unknown whether it had an effect')]);
  expect(await mcp.runsOf('slow_write')).toBe(1);
});

full.test('A call that a kill interrupted is not repeated at another server', async () => {
  const name = 'cut';
  const { id } = (await (await add({ name })).json()) as ServerBody;
  await mcp.become('hang');
  const content = toolLines([['mcp_cut_search_issues', { query: 'x' }]]);
  const { turnId } = idsOf(await user.send({ content, modelId: 'demo', mode: 'work' }));
  const { pool } = product.environment.database;
  await waitFor('the call to begin', async () => {
    const [rows] = await pool.query('SELECT id FROM tool_calls WHERE turn_id = ? AND begun_at IS NOT NULL', [turnId]);
    return (rows as unknown[]).length > 0;
  });
  await product.process.kill('SIGKILL');
  await pool.query('UPDATE mcp_servers SET url = ? WHERE id = ?', [other.url, id]);
  await mcp.become('serve');
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  const { chunks } = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(toolOutputs(chunks)).toEqual([expect.stringContaining('It is unknown whether it had an effect')]);
  expect(await other.runsOf('search_issues')).toBe(0);
  await user.fetch(`${path()}/${id}`, { method: 'DELETE' });
});

test('An unreachable server does not break turns: its tools stay listed, and their calls fail', async () => {
  const stale = async () =>
    product.environment.database.pool.query('UPDATE mcp_servers SET listed_at = ?, failed_at = NULL', [new Date(0)]);
  for (const mode of ['refuse', 'hang'] as const) {
    await mcp.become(mode);
    await stale();
    expect((await call('drive_list', {})).output).toMatchObject({ path: '/' });
    expect(await servers()).toMatchObject([
      { status: 'unreachable', tools: expect.arrayContaining([expect.anything()]) },
    ]);
  }
  await mcp.become('refuse');
  expect((await call('mcp_tracker_search_issues', { query: 'x' })).output).toMatch(
    /^error: The server cannot be reached/,
  );
  await mcp.become('serve');
  await stale();
  expect((await call('mcp_tracker_search_issues', { query: 'x' })).output).toBe('2 issues about x');
});

test('Invalid servers, taken names and strangers are refused', async () => {
  const stranger = await product.user();
  const code = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code];
  expect(await code(await add({}))).toEqual([409, 'MCP_SERVER_NAME_TAKEN']);
  expect(await code(await add({ name: 'two', url: 'ftp://x/' }))).toEqual([422, 'MCP_URL_INVALID']);
  expect(await code(await add({ name: 'two', url: 'https://a:b@x/' }))).toEqual([422, 'MCP_URL_INVALID']);
  expect(await code(await add({ name: 'Two' }))).toEqual([400, 'INVALID_REQUEST']);
  expect(await code(await add({ name: 'two', headers: { 'a b': 'x' } }))).toEqual([400, 'INVALID_REQUEST']);
  expect((await add({ name: 'two' }, stranger)).status).toBe(404);
});

test('Adding a server reports at once whether it answers, and whether it accepts the token', async () => {
  const added = async (fields: object) => {
    const response = await add(fields);
    return { httpStatus: response.status, ...((await response.json()) as ServerBody) };
  };
  const known = await added({ name: 'known' });
  expect(known).toMatchObject({ httpStatus: 201, status: 'ok', failure: null });
  expect(known.tools.map(({ name }) => name)).toContain('search_issues');
  const wrong = await added({ name: 'wrong', headers: { authorization: 'Bearer another' } });
  expect(wrong).toMatchObject({ httpStatus: 201, status: 'refused', failure: expect.stringContaining('(401)') });
  await mcp.become('hang');
  const silent = await added({ name: 'silent' });
  expect(silent).toMatchObject({ httpStatus: 201, status: 'unreachable', failure: expect.stringContaining('in time') });
  await mcp.become('serve');
  const check = (id: string, as = user) => as.fetch(`${path()}/${id}/check`, { method: 'POST' });
  expect(await (await check(silent.id)).json()).toMatchObject({ status: 'ok', failure: null });
  expect(await (await check(wrong.id)).json()).toMatchObject({ status: 'refused' });
  expect((await check(wrong.id, await product.user())).status).toBe(404);
  expect((await check('mcp_01JAB3C4D5E6F7G8H9JKMNPQSB')).status).toBe(404);
  for (const { id } of [known, wrong, silent]) await user.fetch(`${path()}/${id}`, { method: 'DELETE' });
});

test('A server at an internal address can be added but is never reached', async () => {
  const added = await add({ name: 'metadata', url: 'http://169.254.169.254/mcp' });
  expect(await added.json()).toMatchObject({ status: 'unreachable', failure: expect.stringContaining('link-local') });
  expect(await servers()).toMatchObject([
    { name: 'metadata', status: 'unreachable', failure: expect.stringContaining('link-local'), tools: [] },
    { name: 'tracker' },
  ]);
});

test('An idempotency key adds a server only once, and a removed server offers no tools', async () => {
  const made = await Promise.all(
    [1, 2].map(async () => (await add({ name: 'once', approval: 'never' }, user, 'key-1')).status),
  );
  expect(made.toSorted()).toEqual(expect.arrayContaining([201]));
  const { id } = (await (await add({ name: 'once', approval: 'never' }, user, 'key-1')).json()) as ServerBody;
  expect((await user.fetch(`${path()}/${id}`, { method: 'DELETE' })).status).toBe(204);
  expect((await user.fetch(`${path()}/${id}`, { method: 'DELETE' })).status).toBe(404);
  expect((await call('mcp_once_search_issues', { query: 'x' })).output).toBe(
    'error: There is no tool named mcp_once_search_issues.',
  );
});
