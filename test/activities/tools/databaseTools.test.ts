import { asUser, type ChatUser } from '../../builders/chat.ts';
import { databasesOf, enter } from '../../builders/databases.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolOutputs } from '../../builders/tools.ts';
import { tenantServer } from '../../support/runServer.ts';
import { collect } from '../../support/sseClient.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ...(await tenantServer()), ATRIUM_DATABASE_QUERY_SECONDS: '5' });
  user = await product.user();
  const own = databasesOf(user);
  const { id } = await own.make('shop');
  await using connection = await enter(await own.connection(id));
  for (const sql of [
    'CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, words LONGTEXT, raw VARBINARY(10))',
    "INSERT INTO notes (words, raw) VALUES ('one', X'ff00'), (NULL, NULL)",
    'CREATE FUNCTION adds() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO notes (words) VALUES (1); RETURN 1; END',
    'CREATE VIEW sly AS SELECT adds() AS n',
  ]) {
    await connection.query(sql);
  }
});
afterAll(() => product.close());

/**
 * Lets the agent call a tool, and answers its request for approval with `approved`. `meanwhile` runs before the
 * decision.
 */
async function call(
  name: string,
  args: object,
  { mode = 'ask', approved = true, as = user, meanwhile = async (): Promise<unknown> => undefined } = {},
) {
  const content = `/tool ${name} ${JSON.stringify(args)}`;
  const { turnId } = await as.ask({ content, modelId: 'demo', mode, spaceId: as.spaceId });
  const { pendingToolCalls } = await as.turn(turnId);
  await meanwhile();
  for (const { toolCallId } of pendingToolCalls) {
    await as.fetch(`/chat/turns/${turnId}/approvals/${toolCallId}`, { method: 'POST', body: { approved } });
  }
  await as.ended(turnId);
  const { chunks } = await collect(await as.open(`/chat/turns/${turnId}/stream`));
  return { asked: pendingToolCalls.length, output: toolOutputs(chunks)[0] as never };
}

const read = async (sql: string, more = {}) => (await call('database_query', { database: 'shop', sql }, more)).output;
const write = (sql: string, approved = true) =>
  call('database_execute', { database: 'shop', sql }, { mode: 'work', approved });

test('An agent lists databases and reads from them', async () => {
  expect((await call('database_list', {})).output).toMatchObject({ databases: [{ database: 'shop', isReady: true }] });
  expect(await read('SELECT id, words, raw FROM notes ORDER BY id')).toEqual({
    data: {
      columns: ['id', 'words', 'raw'],
      rows: [
        ['1', 'one', '0xff00'],
        ['2', null, null],
      ],
    },
  });
  expect(await read('SHOW TABLES LIKE "notes"')).toMatchObject({ data: { rows: [['notes']] } });
});

test('The tool database_query never changes data', async () => {
  const before = await read('SELECT COUNT(*) FROM notes');
  for (const sql of [
    "INSERT INTO notes (words) VALUES ('x')",
    'SELECT * FROM sly',
    'SELECT adds()',
    'BEGIN NOT ATOMIC COMMIT; SELECT * FROM sly; END',
    '/*! BEGIN NOT ATOMIC COMMIT; SELECT * FROM sly; END */',
    'SELECT 1; DELETE FROM notes',
    'COMMIT',
    'SELECT * FROM notes FOR UPDATE',
    "SELECT 1 INTO OUTFILE '/tmp/atrium-tool'",
    'WITH one AS (SELECT 1) DELETE FROM notes',
    'SELECT * FROM mysql.user',
    'EXPLAIN DELETE FROM notes',
  ]) {
    expect([sql, typeof (await read(sql))]).toEqual([sql, 'string']); // an error text
  }
  expect(await read('SELECT COUNT(*) FROM notes')).toEqual(before);
});

test('Large results are truncated, and a statement ends at its time limit', async () => {
  const many = await read(
    'WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n',
  );
  expect(many).toMatchObject({ truncated: true });
  expect((many as { data: { rows: object[] } }).data.rows).toHaveLength(200);
  const long = await read("SELECT REPEAT('x', 100000) AS words, 'more' AS rest");
  expect(long).toMatchObject({ truncated: true, data: { rows: [[expect.stringMatching(/^x{40000}$/), '']] } });
  // Atrium or the server's watchdog ends the statement. MySQL then may report the interrupted sleep as the result 1.
  const ended = /longer than 5 seconds|interrupted|\[\["1"\]\]/;
  expect(JSON.stringify(await read('SELECT SLEEP(600)'))).toMatch(ended);
});

test('An agent writes only if its user approves', async () => {
  expect(await write("INSERT INTO notes (words) VALUES ('written')", false)).toMatchObject({ asked: 1 });
  const sql = "SELECT COUNT(*) FROM notes WHERE words = 'written'";
  expect(await read(sql)).toMatchObject({ data: { rows: [['0']] } });
  expect(await write("INSERT INTO notes (words) VALUES ('written')")).toEqual({ asked: 1, output: { changedRows: 1 } });
  expect(await read(sql)).toMatchObject({ data: { rows: [['1']] } });
  expect((await write('SELEC 1')).output).toContain('syntax');
  const asking = await call('database_execute', { database: 'shop', sql: 'DELETE FROM notes' });
  expect(asking.output).toContain('may only read');
});

test('Viewers, keys without databases:write and members of other spaces cannot query', async () => {
  const viewer = await product.user();
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  const sql = 'SELECT * FROM notes';
  expect(await read(sql, { as: asUser(product, { ...viewer, spaceId: user.spaceId }) })).toContain('may not use');
  const made = await user.fetch('/api/keys', {
    method: 'POST',
    body: { name: 'bot', scopes: ['chat', 'databases:read'] },
  });
  const { key } = (await made.json()) as { key: string };
  const bot = asUser(product, { ...user, token: key });
  expect(await read(sql, { as: bot })).toContain('lacks the scope "databases:write"');
  expect((await call('database_list', {}, { as: bot })).output).toMatchObject({ databases: [{ database: 'shop' }] });
  expect(await read(sql, { as: await product.user() })).toContain('no such database');
});

// Runs last, because it leaves databases in the space.
test('Another database under the approved name is not changed, and the model is told', async () => {
  const own = databasesOf(user);
  const { id } = await own.make('spare');
  const meanwhile = async () => {
    await own.rename(id, 'former');
    await own.make('spare');
  };
  const sql = 'CREATE TABLE notes (id INT PRIMARY KEY)';
  const { asked, output } = await call('database_execute', { database: 'spare', sql }, { mode: 'work', meanwhile });
  expect([asked, output]).toEqual([1, expect.stringMatching(/^error: TOOL_CHANGED: /)]);
  expect((await call('database_query', { database: 'spare', sql: 'SHOW TABLES' })).output).toMatchObject({
    data: { rows: [] },
  });
});
