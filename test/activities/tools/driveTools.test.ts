import type { UiChunk } from '../../../models/chat/turnLog/chunks.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, requestsWith, type TestProduct } from '../../builders/product.ts';
import { toolLines, toolOutputs } from '../../builders/tools.ts';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
});
afterAll(() => product.close());

/** Calls tools in a turn of the demo model, one step per call, and returns their results. */
async function call(as: ChatUser, calls: [string, unknown][], mode = 'work'): Promise<unknown[]> {
  const answer = await as.ask({ content: toolLines(calls), modelId: 'demo', mode, spaceId: user.spaceId });
  expect(answer.chunks.at(-1)).toMatchObject({ type: 'finish' });
  return toolOutputs(answer.chunks);
}

test('An agent writes, reads by lines, edits, moves, finds and lists a file', async () => {
  const text = Array.from({ length: 30 }, (_, line) => `line ${line + 1}`).join('\n');
  const results = await call(user, [
    ['drive_write', { path: '/notes/plan.md', content: text }],
    ['drive_read', { path: 'notes/plan.md', firstLine: 10, lines: 2 }],
    ['drive_edit', { path: '/notes/plan.md', oldText: 'line 10\nline 11', newText: 'ten\neleven' }],
    ['drive_read', { path: '/notes/plan.md', firstLine: 10, lines: 100 }],
    ['drive_move', { path: '/notes/plan.md', to: '/archive/2026/plan.md' }],
    ['drive_search', { query: 'eleven' }],
    ['drive_list', { path: '/archive' }],
    ['drive_list', {}],
  ]);
  expect(results).toMatchObject([
    { path: '/notes/plan.md', version: 1, sizeBytes: Buffer.byteLength(text) },
    { text: '    10\tline 10\n    11\tline 11', nextLine: 12, contentType: 'text/markdown', version: 1 },
    { path: '/notes/plan.md', version: 2, replaced: 1 },
    {
      text: expect.stringMatching(/^ {4}10\tten\n {4}11\televen\n {4}12\tline 12\n[\s\S]*30\tline 30$/),
      nextLine: null,
    },
    { from: '/notes/plan.md', path: '/archive/2026/plan.md' },
    { found: [{ path: '/archive/2026/plan.md', foundIn: ['text'] }], hasMore: false },
    { path: '/archive', entries: [{ name: '2026', kind: 'folder', children: 1 }], nextAfter: null },
    { path: '/', entries: [{ name: 'archive' }, { name: 'notes' }], nextAfter: null },
  ]);
});

test('Failed calls change nothing, and the model is told why', async () => {
  await call(user, [['drive_write', { path: '/twice.txt', content: 'same same' }]]);
  const results = await call(user, [
    ['drive_read', { path: '/nowhere.txt' }],
    ['drive_read', { path: '/' }],
    ['drive_edit', { path: '/twice.txt', oldText: 'same', newText: 'other' }],
    ['drive_edit', { path: '/twice.txt', oldText: 'absent', newText: 'other' }],
    ['drive_write', { path: '/twice.txt', content: 'x', ifExists: 'error' }],
    ['drive_write', { path: '/twice.txt/below', content: 'x' }],
    ['drive_write', { path: '/a/../b', content: 'x' }],
    ['drive_write', { content: 'x' }],
    ['drive_write', { path: '/x', content: 7, more: true }],
    ['drive_move', { path: '/twice.txt', to: '/' }],
    ['drive_list', { after: 'nobody' }],
    ['no_such_tool', {}],
  ]);
  expect(results).toEqual([
    'error: There is nothing at /nowhere.txt.',
    'error: / is a folder, not a file.',
    'error: oldText is in the file 2 times. Include more of the text around it, or set `all`.',
    expect.stringContaining('error: oldText is not in the file.'),
    'error: An item of this name already exists here.',
    'error: An item on the path is not a folder.',
    'error: A name in the drive must not be "." or "..".',
    "error: The input of the tool is not valid: it must have required property 'path'.",
    'error: The input of the tool is not valid: it must NOT have additional properties ("more"); /content must be string.',
    'error: The new path has no name at its end.',
    'error: The folder has no entry named nobody. Take `after` from the `nextAfter` of the previous call.',
    'error: There is no tool named no_such_tool.',
  ]);
  expect(await call(user, [['drive_read', { path: '/twice.txt' }]])).toMatchObject([
    { text: '     1\tsame same', version: 1 },
  ]);
});

test('Calls of one step run concurrently, and all their edits of one file are kept', async () => {
  await call(user, [['drive_write', { path: '/edits.txt', content: 'a b c d e f' }]]);
  const lines = ['a', 'b', 'c', 'd', 'e', 'f'].map(
    (letter) =>
      `/tool drive_edit ${JSON.stringify({ path: '/edits.txt', oldText: letter, newText: letter.toUpperCase() })}`,
  );
  const answer = await user.ask({ content: lines.join('\n'), modelId: 'demo', mode: 'work' });
  expect(toolOutputs(answer.chunks).every((output) => typeof output === 'object')).toBe(true);
  expect(await call(user, [['drive_read', { path: '/edits.txt' }]])).toMatchObject([
    { text: '     1\tA B C D E F', version: 7 },
  ]);
});

test('Mode ask offers only tools that read, and refuses the others', async () => {
  const results = await call(
    user,
    [
      ['drive_write', { path: '/asked.txt', content: 'x' }],
      ['drive_delete', { path: '/asked.txt' }],
      ['drive_list', {}],
    ],
    'ask',
  );
  expect(results.slice(0, 2)).toEqual([
    'error: drive_write changes things, but this turn is in ask mode and may only read.',
    'error: drive_delete changes things, but this turn is in ask mode and may only read.',
  ]);
  expect(JSON.stringify(results[2])).not.toContain('asked.txt');
  const names = async (mode: string) => {
    await user.ask({ content: `offered in ${mode}`, mode });
    const [request] = requestsWith(product.provider, `offered in ${mode}`);
    return ((request?.body.tools ?? []) as { function: { name: string } }[]).map(({ function: { name } }) => name);
  };
  expect(await names('ask')).toEqual(expect.arrayContaining(['drive_list', 'drive_read', 'drive_search']));
  expect(await names('ask')).not.toContain('drive_write');
  expect(await names('work')).toEqual(
    expect.arrayContaining(['drive_read', 'drive_write', 'drive_edit', 'drive_move', 'drive_delete']),
  );
});

test('A viewer can read, but other spaces and threads of other people are out of reach', async () => {
  await call(user, [['drive_write', { path: '/shared.txt', content: 'for all of us' }]]);
  const viewer = await product.user();
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  expect(await call(viewer, [['drive_read', { path: '/shared.txt' }]], 'ask')).toMatchObject([
    { text: '     1\tfor all of us' },
  ]);
  const stranger = await product.user();
  const answer = await stranger.ask({
    content: toolLines([
      ['drive_read', { path: '/shared.txt' }],
      ['drive_list', { container: 'thread' }],
      ['drive_list', { container: `thread:${idsOf(await user.send({ content: 'mine' })).threadId}` }],
    ]),
    modelId: 'demo',
  });
  expect(toolOutputs(answer.chunks)).toEqual([
    'error: There is nothing at /shared.txt.',
    { path: '/', entries: [], nextAfter: null },
    expect.stringContaining('error: The input of the tool is not valid'),
  ]);
});

test('A role that is lowered during a turn applies at once', async () => {
  const editor = await product.user();
  await product.identity.members.add(user.spaceId, editor.email, 'editor');
  const content = `/tokens 60 50\n${toolLines([['drive_write', { path: '/late.txt', content: 'x' }]])}`;
  const stream = await editor.send({ content, modelId: 'demo', mode: 'work', spaceId: user.spaceId });
  await product.identity.members.changeRole(user.spaceId, editor.id, 'viewer');
  const chunks: UiChunk[] = [];
  for await (const { data } of stream.events) if (data !== '[DONE]') chunks.push(JSON.parse(data) as UiChunk);
  expect(toolOutputs(chunks)).toEqual(['error: The user may not use drive_write in this space.']);
});

test('Files that are not text cannot be read or edited as text', async () => {
  const binary = `${'\\u0000'.repeat(3)}x`;
  const results = await call(user, [
    ['drive_write', { path: '/raw.bin', content: JSON.parse(`"${binary}"`) as string }],
    ['drive_read', { path: '/raw.bin' }],
    ['drive_edit', { path: '/raw.bin', oldText: 'x', newText: 'y' }],
    ['drive_write', { path: '/empty.txt', content: '' }],
    ['drive_read', { path: '/empty.txt' }],
  ]);
  expect(results).toMatchObject([
    { path: '/raw.bin' },
    expect.stringContaining('is not text'),
    expect.stringContaining('is not text'),
    { sizeBytes: 0 },
    { text: '', nextLine: null },
  ]);
});

test('A long file is read in parts of less than 64 KiB', async () => {
  const content = Array.from({ length: 4_000 }, (_, line) => `${line + 1} ${'x'.repeat(60)}`).join('\r\n');
  const [, first] = await call(user, [
    ['drive_write', { path: '/long.txt', content }],
    ['drive_read', { path: '/long.txt', lines: 5_000 }],
  ]);
  const { text, nextLine } = first as { text: string; nextLine: number };
  expect(text.length).toBeLessThan(64 * 1024);
  expect(nextLine).toBeGreaterThan(500);
  const [rest] = await call(user, [['drive_read', { path: '/long.txt', firstLine: nextLine, lines: 1 }]]);
  expect(rest).toMatchObject({ text: expect.stringContaining(`\t${nextLine} xxx`), nextLine: nextLine + 1 });
});
