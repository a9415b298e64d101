import { QueryTypes } from 'sequelize';
import { idempotencyModels } from '../../../models/operations/idempotency.ts';
import { type ChatUser, idsOf, type ThreadBody } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { collect } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

let product: TestProduct;
let user: ChatUser;
let colleague: ChatUser;
let stranger: ChatUser;
beforeAll(async () => {
  product = await buildProduct();
  [user, colleague, stranger] = await Promise.all([product.user(), product.user(), product.user()]);
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
});
afterAll(() => product.close());

const create = (person: ChatUser, body: unknown = {}, headers?: Record<string, string>) =>
  person.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body, headers });

async function createThread(person: ChatUser, title?: string): Promise<ThreadBody> {
  const response = await create(person, { title });
  expect(response.status).toBe(201);
  return (await response.json()) as ThreadBody;
}

interface Page<T> {
  data: T[];
  nextCursor: string | null;
  previousCursor: string | null;
}

/** Every page of a list, by its cursors. */
async function pagesOf<T>(path: string, limit: number): Promise<T[][]> {
  const pages: T[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page<T> = await user.get(`${path}?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`);
    pages.push(page.data);
    cursor = page.nextCursor;
  }
  return pages;
}

test('A thread can be made, read and renamed', async () => {
  const made = await createThread(user, 'Plans');
  expect(made).toMatchObject({ spaceId: user.spaceId, title: 'Plans', activeTurnId: null });
  expect(made.id).toMatch(/^thr_[0-9A-Z]{26}$/);
  expect(await user.get(`/api/threads/${made.id}`)).toEqual(made);
  const renamed = await user.fetch(`/api/threads/${made.id}`, { method: 'PATCH', body: { title: 'Better plans' } });
  expect([renamed.status, await renamed.json()]).toEqual([200, { ...made, title: 'Better plans' }]);
  expect(await user.get(`/api/threads/${made.id}`)).toMatchObject({ title: 'Better plans' });
  expect(await createThread(user)).toMatchObject({ title: null });
});

test.each([
  ['an empty title', { title: '' }],
  ['a title that is too long', { title: 'x'.repeat(301) }],
  ['a field that is not known', { name: 'x' }],
])('400 for %s', async (_name, body) => {
  expect((await create(user, body)).status).toBe(400);
  const { id } = await createThread(user);
  expect((await user.fetch(`/api/threads/${id}`, { method: 'PATCH', body })).status).toBe(400);
});

test('A member sees only their own threads, and a viewer can have threads', async () => {
  const mine = await createThread(user, 'Mine');
  const theirs = await createThread(colleague, 'Theirs');
  const ids = async (person: ChatUser) =>
    (await person.get<Page<ThreadBody>>(`/api/spaces/${user.spaceId}/threads?limit=200`)).data.map(({ id }) => id);
  expect(await ids(user)).toContain(mine.id);
  expect(await ids(user)).not.toContain(theirs.id);
  expect(await ids(colleague)).toEqual([theirs.id]);
  const viewer = await product.user();
  await product.identity.members.add(user.spaceId, viewer.email, 'viewer');
  const { id } = await createThread(viewer);
  expect(await ids(viewer)).toEqual([id]);
});

test('403 for a colleague, 404 for another tenant, 401 without a credential', async () => {
  const { id } = await createThread(user);
  const requests = [
    { path: `/api/threads/${id}` },
    { path: `/api/threads/${id}`, method: 'PATCH', body: { title: 'x' } },
    { path: `/api/threads/${id}`, method: 'DELETE' },
    { path: `/api/threads/${id}/messages` },
    { path: `/api/threads/${id}/turns` },
  ];
  for (const { path, ...init } of requests) {
    const name = `${init.method ?? 'GET'} ${path}`;
    expect([name, (await colleague.fetch(path, init)).status]).toEqual([name, 403]);
    expect([name, (await stranger.fetch(path, init)).status]).toEqual([name, 404]);
    const nobody = await fetch(product.url + path, { method: init.method ?? 'GET' });
    expect([name, nobody.status]).toEqual([name, 401]);
    expect((await user.fetch(path.replace(id, 'thr_none'), init)).status).toBe(404);
  }
  const list = `/api/spaces/${user.spaceId}/threads`;
  expect((await stranger.fetch(list)).status).toBe(404);
  expect((await stranger.fetch(list, { method: 'POST', body: {} })).status).toBe(404);
  expect(await user.get(`/api/threads/${id}`)).toMatchObject({ title: null });
});

test('A thread is found by the chat id that its client made, in the space where it was made', async () => {
  const chatId = 'made-by-a-client';
  const { space } = await product.identity.spaces.create(user.id, 'Not the default one');
  await product.identity.members.add(space.id, colleague.email, 'owner');
  const { threadId } = await user.ask({ content: 'Hello', id: chatId, spaceId: space.id });
  const path = (rest = '') => `/api/threads/${chatId}${rest}?spaceId=${space.id}`;
  expect(await user.get(path())).toMatchObject({ id: threadId });
  expect(await user.get(path('/messages'))).toMatchObject({ data: [{ role: 'user' }, { role: 'assistant' }] });
  expect(await user.get(path('/turns'))).toMatchObject({ data: [{ threadId }] });
  // The chat id is unknown to other members of the space, and in another space of the same user.
  const statuses = async (person: ChatUser, of: string) =>
    Promise.all(['', '/messages', '/turns'].map(async (rest) => (await person.fetch(of + rest)).status));
  expect(await statuses(user, `/api/threads/${chatId}`)).toEqual([404, 404, 404]);
  expect((await colleague.fetch(path())).status).toBe(404);
  expect((await stranger.fetch(path())).status).toBe(404);
  expect((await user.fetch(path(), { method: 'PATCH', body: { title: 'Named' } })).status).toBe(200);
  expect((await user.fetch(path(), { method: 'DELETE' })).status).toBe(204);
  expect((await user.fetch(path('/messages'))).status).toBe(404);
});

describe('lists', () => {
  test('Threads are listed by their latest use, page by page', async () => {
    const owner = await product.user();
    const made: string[] = [];
    for (let index = 0; index < 5; index++) {
      const response = await owner.fetch(`/api/spaces/${owner.spaceId}/threads`, { method: 'POST', body: {} });
      made.push(((await response.json()) as ThreadBody).id);
    }
    const [oldest = ''] = made;
    await owner.ask({ content: 'Used again', threadId: oldest });
    const path = `/api/spaces/${owner.spaceId}/threads`;
    const first = await owner.get<Page<ThreadBody>>(`${path}?limit=3`);
    const second = await owner.get<Page<ThreadBody>>(`${path}?limit=3&cursor=${first.nextCursor}`);
    const listed = [...first.data, ...second.data].map(({ id }) => id);
    expect(listed).toEqual([oldest, ...made.slice(1).reverse()]);
    expect(second.nextCursor).toBeNull();
  });

  test('Messages and turns are listed in the order of the thread, page by page', async () => {
    const { id } = await createThread(user);
    for (const content of ['One', 'Two', 'Three']) await user.ask({ content, threadId: id });
    const messages = await pagesOf<{ id: string; role: string }>(`/api/threads/${id}/messages`, 4);
    expect(messages.map((page) => page.map(({ role }) => role))).toEqual([
      ['user', 'assistant', 'user', 'assistant'],
      ['user', 'assistant'],
    ]);
    expect(new Set(messages.flat().map((message) => message.id)).size).toBe(6);
    const turns = await pagesOf<{ id: string; createdAt: string; usage: { inputTokens: number } }>(
      `/api/threads/${id}/turns`,
      2,
    );
    expect(turns.map((page) => page.length)).toEqual([2, 1]);
    expect(turns.flat().map(({ usage }) => usage.inputTokens)).toEqual([10, 10, 10]);
    const times = turns.flat().map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted());
  });

  test('Messages and turns are listed newest first, and from a cursor in either direction', async () => {
    const { id } = await createThread(user);
    for (const content of ['One', 'Two', 'Three']) await user.ask({ content, threadId: id });
    for (const [list, limit] of [
      ['messages', 4],
      ['turns', 2],
    ] as const) {
      const path = `/api/threads/${id}/${list}`;
      const all = (await user.get<Page<{ id: string }>>(path)).data.map((each) => each.id);
      const end = await user.get<Page<{ id: string }>>(`${path}?order=desc&limit=${limit}`);
      expect(end.data.map((each) => each.id)).toEqual(all.toReversed().slice(0, limit));
      const from = async (order: string) =>
        (await user.get<Page<{ id: string }>>(`${path}?order=${order}&cursor=${end.nextCursor}`)).data.map(
          (each) => each.id,
        );
      expect(await from('desc')).toEqual(all.slice(0, -limit).toReversed());
      expect(await from('asc')).toEqual(all.slice(1 - limit));
      expect((await user.fetch(`${path}?order=newest`)).status).toBe(400);
    }
  });

  test('Cursors lead on and back in lists of threads, messages and turns, and to what has come since', async () => {
    const owner = await product.user();
    const ids = async (path: string) => {
      const page = await owner.get<Page<{ id: string }>>(path);
      return { ...page, ids: page.data.map((each) => each.id) };
    };
    const threads = `/api/spaces/${owner.spaceId}/threads`;
    expect(await owner.get(threads)).toEqual({ data: [], nextCursor: null, previousCursor: null });
    const turns = [];
    for (const content of ['One', 'Two', 'Three']) turns.push(await owner.ask({ content }));
    const [{ threadId } = { threadId: '' }] = turns;
    for (const content of ['Four', 'Five', 'Six']) await owner.ask({ content, threadId });
    for (const path of [threads, `/api/threads/${threadId}/messages`, `/api/threads/${threadId}/turns`]) {
      const all = (await ids(`${path}?order=desc`)).ids;
      expect(all.length).toBeGreaterThan(2);
      const end = await ids(`${path}?order=desc&limit=2`);
      expect([path, end.ids]).toEqual([path, all.slice(0, 2)]);
      const older = await ids(`${path}?order=desc&limit=1&cursor=${end.nextCursor}`);
      expect([path, older.ids]).toEqual([path, all.slice(2, 3)]);
      const back = await ids(`${path}?order=asc&cursor=${older.previousCursor}`);
      expect([path, back.ids]).toEqual([path, all.slice(0, 2).toReversed()]);
      const since = await ids(`${path}?order=asc&cursor=${end.previousCursor}`);
      expect(since).toMatchObject({ ids: [], nextCursor: null, previousCursor: end.previousCursor });
      await owner.ask({ content: 'Later', threadId });
      expect((await ids(`${path}?order=asc&cursor=${end.previousCursor}`)).ids.length).toBeGreaterThan(0);
      expect((await owner.fetch(`${path}?order=newest`)).status).toBe(400);
    }
    expect((await ids(threads)).ids[0]).toBe(threadId);
    expect((await ids(`${threads}?order=asc`)).ids.at(-1)).toBe(threadId);
  });

  test('400 for an invalid limit or cursor', async () => {
    const { id } = await createThread(user);
    const paths = [`/api/spaces/${user.spaceId}/threads`, `/api/threads/${id}/messages`, `/api/threads/${id}/turns`];
    const cursors = [
      'nonsense!',
      ...['', 'x', 'x y', '1', '1e99 2', '2026-01-01'].map((key) => Buffer.from(key).toString('base64url')),
    ];
    for (const path of paths) {
      for (const limit of ['0', '201', 'x']) expect((await user.fetch(`${path}?limit=${limit}`)).status).toBe(400);
      for (const cursor of cursors) {
        const response = await user.fetch(`${path}?cursor=${cursor}`);
        // A number is a valid position in the list of turns.
        const expected = path.endsWith('turns') && Buffer.from(cursor, 'base64url').toString() === '1' ? 200 : 400;
        expect([path, cursor, response.status]).toEqual([path, cursor, expected]);
      }
    }
  });
});

describe('Idempotency-Key', () => {
  const key = (value: string) => ({ 'idempotency-key': value });

  test('Repeated and simultaneous requests with the same key get the same answer', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => create(user, { title: 'Once' }, key('k1'))));
    const made = answers.filter(({ status }) => status === 201);
    // Requests that arrive during the first one get 409.
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    expect(made.length).toBeGreaterThan(0);
    const bodies = await Promise.all(made.map(async (response) => JSON.stringify(await response.json())));
    expect(new Set(bodies).size).toBe(1);
    const again = await create(user, { title: 'Once' }, key('k1'));
    expect([again.status, JSON.stringify(await again.json())]).toEqual([201, bodies[0]]);
  });

  test('422 for another body and 409 during the first request, and a key of another caller is another key', async () => {
    expect((await create(user, { title: 'A' }, key('k2'))).status).toBe(201);
    const other = await create(user, { title: 'B' }, key('k2'));
    expect([other.status, await other.json()]).toMatchObject([422, { code: 'IDEMPOTENCY_KEY_REUSED' }]);
    expect((await create(colleague, { title: 'B' }, key('k2'))).status).toBe(201);

    await create(user, { title: 'C' }, key('k3'));
    await idempotencyModels(product.environment.database).Idempotency.update(
      { responseStatus: null, responseBody: null },
      { where: { idempotencyKey: 'k3' } },
    );
    const inFlight = await create(user, { title: 'C' }, key('k3'));
    expect([inFlight.status, inFlight.headers.get('retry-after')]).toEqual([409, '1']);
    expect(await inFlight.json()).toMatchObject({ code: 'IDEMPOTENCY_KEY_IN_FLIGHT' });
  });

  test('a request whose process died is taken over, and makes the same thread', async () => {
    const first = (await (await create(user, { title: 'D' }, key('k4'))).json()) as ThreadBody;
    const row = await idempotencyModels(product.environment.database).Idempotency.findOne({
      where: { idempotencyKey: 'k4' },
      rejectOnEmpty: true,
    });
    await row.update({ responseStatus: null, responseBody: null, claimedAt: new Date(Date.now() - 61_000) });
    const again = await create(user, { title: 'D' }, key('k4'));
    expect([again.status, await again.json()]).toEqual([201, first]);
  });
});

describe('deleting', () => {
  const tables = ['turn_segments', 'turn_contexts', 'model_calls', 'tool_calls'] as const;

  async function rowsOf(threadId: string, turnIds: string[]): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    const count = async (table: string, column: string, ids: string[]) => {
      const [row] = await product.environment.database.sequelize.query<{ n: number }>(
        `SELECT COUNT(*) AS n FROM ${table} WHERE ${column} IN (?)`,
        { replacements: [ids], type: QueryTypes.SELECT },
      );
      counts[table] = row?.n ?? -1;
    };
    for (const table of tables) await count(table, 'turn_id', turnIds);
    for (const table of ['messages', 'thread_aliases', 'turns']) await count(table, 'thread_id', [threadId]);
    await count('threads', 'id', [threadId]);
    return counts;
  }

  test('A deleted thread is hidden at once and then purged: its turns are stopped, and no row is left', async () => {
    const body = { id: 'doomed', openTabs: [], messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }] };
    const toolCalls = [{ id: 'a', name: 'search', arguments: '{}' }];
    const first = await user.ask({ ...body, messages: undefined, content: fake({ toolCalls }) });
    const running = await user.send({ content: fake({ tokens: 3, fail: { how: 'stall' } }), threadId: first.threadId });
    await collect(running, ({ text }) => text.includes('w2'));
    const queued = await user.send({ content: 'waits', threadId: first.threadId });
    const turnIds = [first.turnId, idsOf(running).turnId, idsOf(queued).turnId];
    const before = await rowsOf(first.threadId, turnIds);
    expect(Object.entries(before).filter(([, n]) => n === 0)).toEqual([]);

    const deleted = await user.fetch(`/api/threads/${first.threadId}`, { method: 'DELETE' });
    expect(deleted.status).toBe(204);
    const location = deleted.headers.get('location') ?? '';
    expect(location).toMatch(/^\/api\/operations\/op/);
    for (const path of ['', '/messages', '/turns']) {
      expect((await user.fetch(`/api/threads/${first.threadId}${path}`)).status).toBe(404);
    }
    expect((await user.fetch(`/chat/turns/${first.turnId}`)).status).toBe(404);
    expect(
      (await user.fetch('/chat/stream', { method: 'POST', body: { content: 'x', threadId: first.threadId } })).status,
    ).toBe(404);
    expect((await user.fetch(`/api/threads/${first.threadId}`, { method: 'DELETE' })).status).toBe(404);

    const operation = await waitFor('the purge', async () => {
      const found = await user.get<{ status: string; endedAt: string | null }>(location);
      return found.status !== 'running' && found;
    });
    expect(operation).toMatchObject({ kind: 'deleteThread', status: 'succeeded', result: {} });
    const after = await rowsOf(first.threadId, turnIds);
    expect(Object.entries(after).filter(([, n]) => n !== 0)).toEqual([]);
    // The readers have been told, and the model is no longer called.
    for (const stream of [running, queued]) expect((await collect(stream)).chunks.at(-1)?.type).toBe('abort');
    await waitFor('all requests to the provider to be closed', () =>
      product.provider.requests.every(({ closedMs }) => closedMs !== undefined),
    );
    // The client's own chat id can be used again.
    const anew = await user.ask(body);
    expect(anew.threadId).not.toBe(first.threadId);
  });
});
