import { ownerKey } from '../../../models/chat/indexTexts.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { indexTexts } from '../../builders/fullSpace.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { waitFor } from '../../support/waitFor.ts';

// Searching one's own threads by words. These tests bring the index up to date, as the sweeper does.

const answer = 'Émile says: the Zürich launch is on Thursday.';

let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct(undefined, ({ body }) =>
    JSON.stringify((body.messages as unknown[]).at(-1)).includes('lunch') ? { tokens: [answer] } : undefined,
  );
  user = await product.user();
});
afterAll(() => product.close());

interface Found {
  thread: { id: string; title: string | null };
  message: { id: string; role: string; cursor: string } | null;
  snippet: { text: string; matches: { start: number; end: number }[] };
}
interface Page {
  data: Found[];
  nextCursor: string | null;
}

const index = () => indexTexts(product.environment.database);

const pathOf = (query: string, of = user) => `/api/spaces/${of.spaceId}/threads/search?${query}`;
const search = (q: string, more = '', by = user, of = by) =>
  by.get<Page>(`${pathOf(`q=${encodeURIComponent(q)}`, of)}${more}`);
const wordsIn = ({ snippet }: Found) => snippet.matches.map(({ start, end }) => snippet.text.slice(start, end));

test('Questions, answers and titles are found, with the text around the words', async () => {
  const { threadId } = await user.ask({
    content: `${'far '.repeat(60)} When is the lunch? 日本語`,
  });
  const rename = (title: string) => user.fetch(`/api/threads/${threadId}`, { method: 'PATCH', body: { title } });
  expect((await rename('Quarterly launchParty')).status).toBe(200);
  await index();

  const found = await search('zurich LAUN');
  expect(found).toMatchObject({
    data: [{ thread: { id: threadId }, message: { role: 'assistant' } }],
    nextCursor: null,
  });
  expect(found.data.flatMap(wordsIn)).toEqual(['Zürich', 'launch']);
  const question = await search('lunch');
  expect(question).toMatchObject({ data: [{ message: { role: 'user' } }] });
  expect(question.data[0]?.snippet.text).toMatch(/^[ afr]{48}When is the lunch\? 日本語$/);
  expect((await search('本')).data).toHaveLength(1);
  const title = { thread: { id: threadId, title: 'Quarterly launchParty' }, message: null };
  expect(await search('party')).toMatchObject({ data: [title] });
  // Exact words come first. All words of a query must be in the same text.
  expect((await search('launch')).data.map(({ message }) => message?.role)).toEqual(['assistant', undefined]);
  expect((await search('launch', '&in=title')).data).toMatchObject([title]);
  expect((await search('launch', '&in=text')).data).toMatchObject([{ message: { role: 'assistant' } }]);
  expect((await search('launch quarterly thursday')).data).toEqual([]);

  await rename('Something else');
  expect((await search('party')).data).toEqual([]);
  await index();
  expect((await search('something')).data).toHaveLength(1);
});

test('The list of messages goes on from a found message', async () => {
  const { threadId } = await user.ask({ content: 'First of all' });
  await user.ask({ content: 'wanted needle', threadId });
  await user.ask({ content: 'Last of all', threadId });
  await index();
  const [found] = (await search('needle', '&in=text')).data.filter(({ message }) => message?.role === 'user');
  const list = async (order: string) =>
    (
      await user.get<{ data: { id: string }[] }>(
        `/api/threads/${threadId}/messages?order=${order}&cursor=${found?.message?.cursor}`,
      )
    ).data.map(({ id }) => id);
  expect((await list('asc'))[0]).toBe(found?.message?.id);
  expect(await list('asc')).toHaveLength(4);
  expect(await list('desc')).toHaveLength(2);
});

test('Paging through the results returns each of them once', async () => {
  const owner = await product.user();
  for (let number = 0; number < 3; number++) await owner.ask({ content: `pagination number${number}` });
  await index();
  const seen: string[] = [];
  let cursor = '';
  for (let pages = 0; pages < 9; pages++) {
    const page = await search('pagin', `&limit=1&in=text${cursor}`, owner);
    seen.push(...page.data.map(({ message }) => message?.id ?? ''));
    if (page.nextCursor === null) break;
    cursor = `&cursor=${page.nextCursor}`;
  }
  const all = (await search('pagin', '&in=text', owner)).data.map(({ message }) => message?.id ?? '');
  expect(all.length).toBeGreaterThanOrEqual(3);
  expect(seen).toEqual(all);
});

test('An edited message is found by its new words, and a deleted one is not found', async () => {
  const { threadId } = await user.ask({ content: 'an aubergine', userMessageId: 'to-edit' });
  await index();
  expect((await search('aubergine', '&in=text')).data.length).toBeGreaterThan(0);
  const messages = [{ id: 'to-edit', role: 'user', parts: [{ type: 'text', text: 'a courgette' }] }];
  await user.ask({ id: threadId, threadId, messages, trigger: 'submit-message', messageId: 'to-edit' });
  // Also before the index is brought up to date.
  expect((await search('aubergine', '&in=text')).data).toEqual([]);
  await index();
  const [found] = (await search('courgette', '&in=text')).data;
  expect(found?.thread.id).toBe(threadId);
  expect((await user.fetch(`/api/threads/${threadId}`, { method: 'DELETE' })).status).toBe(204);
  expect((await search('courgette')).data).toEqual([]);
  const rows = async () => {
    const [left] = await product.environment.database.pool.query(
      `SELECT (SELECT COUNT(*) FROM thread_texts WHERE thread_id = ?) + (SELECT COUNT(*) FROM thread_words
         WHERE owner = ? AND word = 'courgette') AS n`,
      [threadId, ownerKey({ spaceId: user.spaceId, userId: user.id })],
    );
    return (left as { n: number }[])[0]?.n;
  };
  expect(await rows()).toBeGreaterThan(1);
  await waitFor('the words to be purged', async () => (await rows()) === 0);
});

test('A search finds only the caller’s own threads, also in a common space', async () => {
  const colleague = await product.user();
  await product.identity.members.add(user.spaceId, colleague.email, 'owner');
  await user.ask({ content: 'a persimmon' });
  await index();
  expect((await search('persimmon')).data.length).toBeGreaterThan(0);
  expect((await search('persimmon', '', colleague, user)).data).toEqual([]);
  expect((await search('persimmon', '', colleague)).data).toEqual([]);
  const stranger = await product.user();
  expect((await stranger.fetch(pathOf('q=persimmon'))).status).toBe(404);
});

test.each(['', 'q=', 'q=x&in=name', 'q=x&limit=101', `q=${'x'.repeat(201)}`, 'q=x&cursor=bm9uZQ'])(
  '400 for the query %p',
  async (query) => {
    expect((await user.fetch(pathOf(query))).status).toBe(400);
  },
);

test('A query without words finds nothing', async () => {
  expect(await search('?!')).toEqual({ data: [], nextCursor: null });
});
