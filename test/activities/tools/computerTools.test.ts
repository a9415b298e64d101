import type { UiChunk } from '../../../models/chat/turnLog/chunks.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildComputer, buildHostingProduct, type TestComputer } from '../../builders/computer.ts';
import type { TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';
import { inFull } from '../../support/inFull.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('computers');

// The computer tools of agents, in a running product, also when the process is killed or the turn is stopped.

let product: TestProduct;
let user: ChatUser;
let computer: TestComputer;
beforeAll(async () => {
  product = await buildHostingProduct({ ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
  user = await product.user();
  computer = await buildComputer(product, user);
});
afterAll(() => product.close());

const work = { modelId: 'demo', mode: 'work' };
type Call = readonly [name: string, input: unknown];

async function run(calls: readonly Call[], more: object = {}): Promise<{ outputs: unknown[]; chunks: UiChunk[] }> {
  const { chunks } = await user.ask({ content: toolLines(calls), ...work, ...more });
  return { outputs: toolOutputs(chunks), chunks };
}

const shownIn = (chunks: readonly UiChunk[]) =>
  chunks.flatMap((chunk) => (chunk.type === 'data-tool-output' ? [chunk.data] : []));

/** Reads a turn's stream until the shown output of a call contains `text`. */
async function untilShown(turnId: string, text: string): Promise<void> {
  const stream = await user.open(`/chat/turns/${turnId}/stream`);
  await collect(stream, ({ chunks }) => shownIn(chunks).some((data) => data.text.includes(text)));
  stream.abort();
}

test('A command’s output is streamed as it is written, and repeated in the result', async () => {
  const command = 'echo one; echo bad >&2; read x; echo $x; exit 2';
  const { outputs, chunks } = await run([['computer_exec', { command, stdin: 'two\n' }]]);
  expect(outputs).toEqual([
    { processId: expect.stringMatching(/^tcl_/), state: 'exited', exitCode: 2, stdout: 'one\ntwo\n', stderr: 'bad\n' },
  ]);
  const shown = shownIn(chunks);
  expect(shown.map(({ stream, text }) => (stream === 'stderr' ? '' : text)).join('')).toBe('one\ntwo\n');
  expect(shown.map(({ stream, text }) => (stream === 'stderr' ? text : '')).join('')).toBe('bad\n');
  expect(shown.at(-1)?.position).toBe(12);
});

test('Output is shown while the command still runs', async () => {
  const stream = await user.send({
    content: toolLines([
      ['computer_exec', { command: 'echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done' }],
    ]),
    ...work,
  });
  const { turnId } = idsOf(stream);
  await untilShown(turnId, 'begun');
  await computer.exec('touch go');
  const { chunks } = await collect(stream);
  expect(toolOutputs(chunks)).toMatchObject([{ stdout: 'begun\ndone\n' }]);
});

test('A flood of tiny writes to both streams is shown in few pieces', async () => {
  const each = 10_000;
  const command = `perl -e 'for (1..${each}) { syswrite(STDOUT, "a"); syswrite(STDERR, "b") }'`;
  const { chunks } = await run([['computer_exec', { command }]]);
  const shown = shownIn(chunks);
  const textOf = (stream: string) => shown.map((piece) => (piece.stream === stream ? piece.text : '')).join('');
  expect([textOf('stdout') === 'a'.repeat(each), textOf('stderr') === 'b'.repeat(each)]).toEqual([true, true]);
  expect(shown.length).toBeLessThan(each / 100);
});

test('Secrets are removed from shown output, also where a secret is cut in two', async () => {
  const path = `/api/spaces/${user.spaceId}/secrets/CANARY`;
  await user.fetch(path, { method: 'PUT', body: { value: 'canary-value-1234567890' } });
  const command = 'printf canary-val; sleep 0.4; printf "ue-1234567890 after"';
  const { outputs, chunks } = await run([['computer_exec', { command }]]);
  expect(JSON.stringify(chunks.filter(({ type }) => type.includes('output')))).not.toContain('canary-val');
  expect(outputs).toMatchObject([{ stdout: expect.stringMatching(/ after$/) }]);
});

test('An agent writes, reads, edits, lists and searches files', async () => {
  const { outputs } = await run([
    ['computer_write', { path: 'notes/a.txt', content: 'first line\nsecond € line\n' }],
    ['computer_write', { path: 'notes/a.txt', content: 'other', ifExists: 'error' }],
    ['computer_edit', { path: 'notes/a.txt', oldText: 'first', newText: 'changed' }],
    ['computer_edit', { path: 'notes/a.txt', oldText: 'absent', newText: 'x' }],
    ['computer_read', { path: '/home/user/notes/a.txt', firstLine: 2 }],
    ['computer_list', { path: 'notes' }],
    ['computer_search', { query: 'second €', path: 'notes' }],
    ['computer_search', { query: '^chang.d', isRegex: true, files: '*.txt' }],
    ['computer_search', { query: '(', isRegex: true }],
    ['computer_read', { path: '/bin/true' }],
    ['computer_read', { path: 'absent' }],
  ]);
  expect(outputs).toEqual([
    { path: 'notes/a.txt', sizeBytes: 27 },
    'error: There is already a file or folder at notes/a.txt.',
    { path: 'notes/a.txt', replaced: 1, sizeBytes: 29 },
    expect.stringContaining('error: oldText is not in the file'),
    { path: '/home/user/notes/a.txt', sizeBytes: 29, text: '     2\tsecond € line', nextLine: null },
    { path: 'notes', entries: [{ name: 'a.txt', type: 'file', sizeBytes: 29 }], next: null },
    { found: [{ path: 'notes/a.txt', line: 2, text: 'second € line' }], hasMore: false },
    { found: [{ path: './notes/a.txt', line: 1, text: 'changed line' }], hasMore: false },
    expect.stringContaining('error: The search failed'),
    'error: /bin/true is not a text file, so its lines cannot be read.',
    expect.stringContaining('error: '),
  ]);
});

test('A background process can be started, read, written to and stopped, and outlives its turn', async () => {
  const { outputs } = await run([
    ['computer_process', { action: 'start', command: 'echo up; while read x; do echo got $x; done' }],
  ]);
  const [{ processId }] = outputs as [{ processId: string }];
  const later = await run([
    ['computer_process', { action: 'read', processId }],
    ['computer_process', { action: 'write', processId, text: 'this\n' }],
    ['computer_process', { action: 'read', processId, after: 3, waitSeconds: 10 }],
    ['computer_process', { action: 'stop', processId }],
    ['computer_process', { action: 'read', processId, after: 999 }],
    ['computer_process', { action: 'read' }],
  ]);
  expect(later.outputs).toMatchObject([
    { state: 'running', stdout: 'up\n', next: 3 },
    { written: 5 },
    { stdout: 'got this\n', next: 12 },
    { state: 'killed' },
    expect.stringContaining('the process has written only 12 bytes'),
    'error: This action needs `processId`.',
  ]);
});

test('Hostile arguments are refused, and computers of other spaces are not found', async () => {
  const foreign = await buildComputer(product);
  const { outputs } = await run([
    ['computer_exec', { command: 'true', timeoutSeconds: 100_000 }],
    ['computer_exec', { command: '' }],
    ['computer_exec', { command: 'true', computerId: foreign.id }],
    ['computer_read', { path: 'x'.repeat(5_000) }],
    ['computer_read', { path: 'a\u0000b' }],
    ['computer_search', { query: 'x', path: '--include=*' }],
    ['computer_process', { action: 'read', processId: '../../other' }],
    ['computer_read', { path: '.bashrc', computerId: foreign.id }],
  ]);
  for (const output of outputs) expect(output).toMatch(/^error: /);
  expect(outputs[2]).toBe('error: There is no such computer.');
});

test('A turn in mode ask can only read, and a turn of an API key needs the scopes', async () => {
  const calls: Call[] = [
    ['computer_list', {}],
    ['computer_exec', { command: 'true' }],
    ['computer_write', { path: 'x', content: '' }],
  ];
  const reading = await run(calls, { mode: 'ask' });
  expect(reading.outputs).toEqual([
    expect.objectContaining({ path: '.' }),
    'error: computer_exec changes things, but this turn is in ask mode and may only read.',
    'error: computer_write changes things, but this turn is in ask mode and may only read.',
  ]);
  const { key } = await product.identity.keys.create(user.id, { name: 'key', scopes: ['chat', 'computers:read'] });
  const stream = await user.open('/chat/stream', {
    body: { content: toolLines(calls), spaceId: user.spaceId, ...work },
    headers: { authorization: `Bearer ${key}` },
  });
  expect(toolOutputs((await collect(stream)).chunks)).toEqual([
    expect.objectContaining({ path: '.' }),
    expect.stringContaining('lacks the scope "computers:write"'),
    expect.stringContaining('lacks the scope "computers:write"'),
  ]);
});

test('A result that is too long for a row becomes a file of the thread', async () => {
  const { outputs } = await run([['computer_exec', { command: 'seq 1 30000' }]]);
  expect(outputs).toMatchObject([{ isLarge: true, file: { path: expect.stringContaining('/tool-results/') } }]);
});

test('Stopping the turn kills the command and its child processes', async () => {
  const stream = await user.send({
    content: toolLines([['computer_exec', { command: 'sleep 300 & echo $! > child; echo begun; wait' }]]),
    ...work,
  });
  const { turnId } = idsOf(stream);
  await waitFor('the command', async () => (await computer.exec('test -s child')).exitCode === 0);
  await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  await user.ended(turnId);
  await waitFor('the command to end', async () => (await computer.exec('kill -0 $(cat child)')).exitCode === 1);
});

test('A command that runs while Atrium is killed runs once, and its result is complete', async () => {
  const command = 'echo ran >> runs.txt; for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; cat runs.txt';
  const { turnId } = idsOf(await user.send({ content: toolLines([['computer_exec', { command }]]), ...work }));
  await untilShown(turnId, '1');
  await product.process.kill('SIGKILL');
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  const { chunks } = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(toolOutputs(chunks)).toMatchObject([{ exitCode: 0, stdout: '1\n2\n3\n4\n5\n6\n7\n8\nran\n' }]);
  // Output that was shown before the kill is not shown again.
  expect(
    shownIn(chunks)
      .map(({ text }) => text)
      .join(''),
  ).toBe('1\n2\n3\n4\n5\n6\n7\n8\nran\n');
  expect((await computer.exec('cat runs.txt')).stdout).toBe('ran\n');
});

full.test('A command ends if its turn is stopped while Atrium is down', async () => {
  const command = 'echo $$ > alone; echo begun; sleep 300';
  const { turnId } = idsOf(await user.send({ content: toolLines([['computer_exec', { command }]]), ...work }));
  await waitFor('the command', async () => (await computer.exec('test -s alone')).exitCode === 0);
  await product.process.kill('SIGKILL');
  await product.environment.database.pool.query('UPDATE turns SET stop_requested_at = NOW(3) WHERE id = ?', [turnId]);
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'stopped' });
  await waitFor('the command to end', async () => (await computer.exec('kill -0 $(cat alone)')).exitCode === 1);
});

full.test('A command that a kill interrupted does not run again on a new default computer', async () => {
  const command = 'echo ran >> moved.txt; echo begun; sleep 3';
  const { turnId } = idsOf(await user.send({ content: toolLines([['computer_exec', { command }]]), ...work }));
  await untilShown(turnId, 'begun');
  await product.process.kill('SIGKILL');
  await product.environment.database.pool.query('UPDATE computers SET default_of = NULL WHERE id = ?', [computer.id]);
  await product.restart();
  expect(await user.ended(turnId)).toMatchObject({ status: 'completed' });
  const { chunks } = await collect(await user.open(`/chat/turns/${turnId}/stream`));
  expect(toolOutputs(chunks)).toEqual([expect.stringContaining('It is unknown whether it had an effect')]);
  expect((await computer.exec('cat moved.txt')).stdout).toBe('ran\n');
});
