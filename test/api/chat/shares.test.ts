import type { ChatUser } from '../../builders/chat.ts';
import { putFile } from '../../builders/files.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { toolLines } from '../../builders/tools.ts';
import { waitFor } from '../../support/waitFor.ts';

// Public links to threads: what they show, and when they end.

let product: TestProduct;
let user: ChatUser;
let threadId: string;
beforeAll(async () => {
  product = await buildProduct();
  user = await product.user();
  threadId = (await user.ask({ content: '/say <script>alert(1)</script> & "more"', modelId: 'demo' })).threadId;
});
afterAll(() => product.close());

interface Share {
  id: string;
  url: string;
  expiresAt: string | null;
}
interface Shared {
  title: string | null;
  data: { role: string; parts: { type: string; text?: string; toolName?: string; output?: string; name?: string }[] }[];
  nextCursor: string | null;
}

const post = (body: unknown = {}, headers: Record<string, string> = {}, id = threadId, by = user) =>
  by.fetch(`/api/threads/${id}/shares`, { method: 'POST', body, headers });

async function share(body?: unknown, id?: string, by?: ChatUser): Promise<Share> {
  const response = await post(body, {}, id, by);
  expect(response.status).toBe(201);
  return (await response.json()) as Share;
}

/** Opens a link without a credential. The public address has no port in tests. */
const open = ({ url }: Share, query = '', accept = 'application/json') =>
  fetch(`${product.url}${new URL(url).pathname}${query}`, { headers: { accept } });
const read = async (link: Share) => (await (await open(link)).json()) as Shared;
const textsOf = ({ data }: Shared) => data.flatMap(({ parts }) => parts.map(({ text }) => text));

test('Everyone with the link reads the thread, as JSON and as a page with escaped text', async () => {
  const link = await share();
  expect(link).toMatchObject({ threadId, toolCalls: false, fileNames: false, laterMessages: false, expiresAt: null });
  const shared = await read(link);
  expect(shared.data.map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(textsOf(shared).join()).toContain('<script>alert(1)</script>');
  // No ids of Atrium, and nothing that identifies the user.
  expect(JSON.stringify(shared)).not.toMatch(/(thr|trn|msg|usr|spc)_/);

  const page = await open(link, '', 'text/html');
  expect(page.headers.get('content-type')).toContain('text/html');
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  const text = await page.text();
  expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot;');
  expect(text).not.toContain('<script');
});

test('A link keeps only a hash of its token, and the list shows no address', async () => {
  const link = await share({ ttlSeconds: 600 });
  const token = link.url.split('/').at(-1) ?? '';
  const [rows] = await product.environment.database.pool.query('SELECT * FROM thread_shares WHERE id = ?', [link.id]);
  expect(JSON.stringify(rows)).not.toContain(token);
  const list = await user.fetch(`/api/threads/${threadId}/shares?limit=1`);
  const text = await list.text();
  expect(text).not.toContain(token);
  const { url: _, ...listed } = link;
  expect(JSON.parse(text)).toMatchObject({ data: [listed] });
});

test('Later messages, tool calls and file names are shown only by links that were made to show them', async () => {
  const id = (await user.ask({ content: toolLines([['drive_list', { path: '/' }]]), modelId: 'demo' })).threadId;
  const { containerId } = await putFile(product, user, '/plan.txt', 'secret contents', id);
  const files = [{ path: '/plan.txt', containerId }];
  await user.ask({ content: 'Look at this', files, threadId: id, modelId: 'demo' });
  const [bare, all] = [await share({}, id), await share({ toolCalls: true, fileNames: true, laterMessages: true }, id)];
  await user.ask({ content: '/say said later', threadId: id, modelId: 'demo' });
  const types = async (link: Share) =>
    new Set((await read(link)).data.flatMap(({ parts }) => parts.map((part) => part.type)));
  expect(await types(bare)).toEqual(new Set(['text']));
  expect(await types(all)).toEqual(new Set(['text', 'tool', 'file']));
  expect(textsOf(await read(bare)).join()).not.toContain('said later');
  expect(textsOf(await read(all)).join()).toContain('said later');
  const page = await (await open(all, '', 'text/html')).text();
  expect(page).toContain('File: plan.txt');
  expect(page).toContain('<code>drive_list</code>');
  expect(page).not.toContain('secret contents');
});

test('A shared thread is read page by page', async () => {
  const id = (await user.ask({ content: '/say one', modelId: 'demo' })).threadId;
  for (let turn = 0; turn < 26; turn++) await user.ask({ content: `/say ${turn}`, threadId: id, modelId: 'demo' });
  const link = await share({}, id);
  const first = await read(link);
  expect(first.data).toHaveLength(50);
  const rest = (await (await open(link, `?cursor=${first.nextCursor}`)).json()) as Shared;
  expect(rest).toMatchObject({ data: { length: 4 }, nextCursor: null });
  expect(await (await open(link, '', 'text/html')).text()).toContain(`href="?cursor=${first.nextCursor}"`);
  expect((await open(link, '?cursor=bm9uZQ')).status).toBe(400);
});

test('A link ends when it is revoked or expires', async () => {
  const [revoked, expired] = [await share(), await share({ ttlSeconds: 60 })];
  const revoke = () => user.fetch(`/api/threads/${threadId}/shares/${revoked.id}`, { method: 'DELETE' });
  expect((await revoke()).status).toBe(204);
  expect((await open(revoked)).status).toBe(404);
  expect((await revoke()).status).toBe(404);
  expect((await open(expired)).status).toBe(200);
  const { pool } = product.environment.database;
  await pool.query('UPDATE thread_shares SET expires_at = ? WHERE id = ?', [new Date(Date.now() - 1), expired.id]);
  const page = await open(expired, '', 'text/html');
  expect([page.status, page.headers.get('content-type')]).toEqual([404, expect.stringContaining('text/html')]);
  const { data } = await user.get<{ data: Share[] }>(`/api/threads/${threadId}/shares`);
  expect(data.map(({ id }) => id)).not.toContain(expired.id);
});

test('A link ends with its thread, and when its maker leaves the space or revokes the key', async () => {
  const member = await product.user();
  await product.identity.members.add(user.spaceId, member.email, 'editor');
  const of = async () => {
    const made = await member.ask({ content: '/say hello', modelId: 'demo', spaceId: user.spaceId });
    return { id: made.threadId, link: await share({}, made.threadId, member) };
  };
  const [deleted, left] = [await of(), await of()];
  expect((await member.fetch(`/api/threads/${deleted.id}`, { method: 'DELETE' })).status).toBe(204);
  expect((await open(deleted.link)).status).toBe(404);

  const { row, key } = await product.identity.keys.create(member.id, { name: 'key' });
  const made = await fetch(`${product.url}/api/threads/${left.id}/shares`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  });
  const byKey = (await made.json()) as Share;
  expect((await open(byKey)).status).toBe(200);
  await product.identity.keys.revoke(member.id, row.id);
  expect((await open(byKey)).status).toBe(404);

  expect((await open(left.link)).status).toBe(200);
  await product.identity.members.remove(user.spaceId, member.id);
  // A process remembers the role of a member for a second.
  await waitFor('the link to end', async () => (await open(left.link)).status === 404);
});

test('A repeated idempotency key gives the link a new address, or 410 after the link has ended', async () => {
  const made = await Promise.all([1, 2].map(async () => (await post({}, { 'idempotency-key': 'share' })).status));
  expect(made).toContain(201);
  const again = (await (await post({}, { 'idempotency-key': 'share' })).json()) as Share;
  expect((await open(again)).status).toBe(200);
  const last = (await (await post({}, { 'idempotency-key': 'share' })).json()) as Share;
  expect(last.id).toBe(again.id);
  expect([(await open(again)).status, (await open(last)).status]).toEqual([404, 200]);
  await user.fetch(`/api/threads/${threadId}/shares/${last.id}`, { method: 'DELETE' });
  const late = await post({}, { 'idempotency-key': 'share' });
  expect([late.status, await late.json()]).toMatchObject([410, { code: 'SHARE_ENDED' }]);
});

test('A thread has at most 50 links', async () => {
  const { id } = (await (
    await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} })
  ).json()) as { id: string };
  for (let link = 0; link < 50; link++) await share({}, id);
  const refused = await post({}, {}, id);
  expect([refused.status, await refused.json()]).toMatchObject([422, { code: 'TOO_MANY_SHARES' }]);
});

test('Only the owner of a thread can share it, and 404 for a guessed link', async () => {
  const colleague = await product.user();
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
  const stranger = await product.user();
  const { id } = await share();
  for (const [person, status] of [
    [colleague, 403],
    [stranger, 404],
  ] as const) {
    expect((await post({}, {}, threadId, person)).status).toBe(status);
    expect((await person.fetch(`/api/threads/${threadId}/shares`)).status).toBe(status);
    expect((await person.fetch(`/api/threads/${threadId}/shares/${id}`, { method: 'DELETE' })).status).toBe(status);
  }
  expect((await fetch(`${product.url}/shared/${'x'.repeat(43)}`)).status).toBe(404);
  for (const body of [{ ttlSeconds: 59 }, { ttlSeconds: 31_536_001 }, { toolCalls: 'yes' }, { reasoning: true }]) {
    expect((await post(body)).status).toBe(400);
  }
});
