import { setTimeout as delay } from 'node:timers/promises';
import { QueryTypes } from 'sequelize';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { inFull } from '../../support/inFull.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { collect, type EventStream, openStream } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

const full = inFull('chat');

/** Coming back to a stream: from its beginning, from where it was cut, and long after its end. */
const longTokens = Array.from({ length: 48 }, (_, at) => `${at}${'x'.repeat(64 * 1024)}`);
let product: TestProduct;
let user: ChatUser;
beforeAll(async () => {
  product = await buildProduct({ ...hurriedSweeper, ATRIUM_COMPATIBLE_MODELS: 'fake-1,long' }, ({ body }) =>
    body.model === 'long' ? { tokens: longTokens } : undefined,
  );
  user = await product.user();
});
afterAll(() => product.close());

/** The log as events, byte for byte as a reader of the whole stream gets it. */
async function logOf(turnId: string): Promise<string> {
  const rows = await product.environment.database.sequelize.query<{ first_seq: number; chunks: string }>(
    'SELECT first_seq, chunks FROM turn_segments WHERE turn_id = ? ORDER BY first_seq',
    { replacements: [turnId], type: QueryTypes.SELECT },
  );
  const lines = rows.flatMap(({ chunks }) => chunks.split('\n'));
  return lines.map((line, at) => `id: ${at + 1}\ndata: ${line}\n\n`).join('');
}

/** Without the beginning and the end of a response, which are not in the log. */
const eventsIn = (raw: string) =>
  raw
    .replace(/^retry: \d+\n\n/, '')
    .replaceAll(': hb\n\n', '')
    .replace(/data: \[DONE\]\n\n$/, '');

/** Long enough for a reader on a busy machine to come during the turn. */
const whileItRuns = { tokens: 200, intervalMs: 20 };

async function runningTurn(body: Record<string, unknown> = {}) {
  const stream = await user.send({ content: fake(whileItRuns), ...body });
  const begun = await collect(stream, ({ text }) => text !== '');
  return { stream, begun, ...idsOf(stream) };
}

describe('During the turn', () => {
  test('A reader by thread, by chat id or by turn gets the whole stream, as the first reader had it', async () => {
    const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: fake(whileItRuns) }] }];
    const { stream, begun, threadId, turnId } = await runningTurn({ id: 'my chat/1', messages, content: undefined });
    const paths = [
      `/chat/stream/${threadId}/stream`,
      `/chat/stream/${encodeURIComponent('my chat/1')}/stream`,
      `/chat/stream/${encodeURIComponent('my chat/1')}/stream?spaceId=${user.spaceId}`,
      `/chat/turns/${turnId}/stream`,
    ];
    const again = await Promise.all(paths.map((path) => user.open(path)));
    expect(again.map((reader) => idsOf(reader))).toEqual(paths.map(() => ({ turnId, threadId })));
    expect(again.map(({ response }) => response.headers.get('x-vercel-ai-ui-message-stream'))).toEqual(
      paths.map(() => 'v1'),
    );
    const rest = await collect(stream);
    const all = await Promise.all(again.map((reader) => collect(reader)));
    for (const one of all) expect(one.events).toEqual([...begun.events, ...rest.events]);
    const log = await logOf(turnId);
    for (const reader of [stream, ...again]) expect(eventsIn(reader.raw().toString())).toBe(log);
  });

  test.each(['Last-Event-ID', 'after', 'both: after beats the header'])(
    'A stream resumes strictly after a position: %s',
    async (way) => {
      const { stream, begun, turnId, threadId } = await runningTurn();
      stream.abort();
      const query = way === 'Last-Event-ID' ? '' : `?after=${begun.lastId}`;
      const lastEventId = way === 'after' ? undefined : way === 'Last-Event-ID' ? begun.lastId : 1;
      const readers = await Promise.all([
        user.open(`/chat/turns/${turnId}/stream${query}`, { lastEventId }),
        user.open(`/chat/stream/${threadId}/stream${query}`, { lastEventId }),
      ]);
      for (const rest of await Promise.all(readers.map((reader) => collect(reader)))) {
        expect(rest.events[0]?.id).toBe(begun.lastId + 1);
        expect(rest.complete).toBe(true);
      }
      const log = await logOf(turnId);
      for (const reader of readers) expect(log.endsWith(eventsIn(reader.raw().toString()))).toBe(true);
    },
  );

  test('400 for a position that is not in the log yet', async () => {
    // The turn goes on for half an hour, until it is stopped.
    const { stream, turnId, threadId } = await runningTurn({ content: fake({ tokens: 90_000, intervalMs: 20 }) });
    const { lastSeq } = await user.turn(turnId);
    const absent = lastSeq + 1_000_000;
    for (const path of [`/chat/turns/${turnId}/stream`, `/chat/stream/${threadId}/stream`]) {
      for (const lastEventId of [String(absent), '-1', '1.5', 'x', '1e0', '0x1']) {
        const { response } = await user.open(path, { lastEventId });
        expect([lastEventId, response.status]).toEqual([lastEventId, 400]);
        expect(await response.json()).toMatchObject({ code: 'POSITION_UNKNOWN' });
      }
      expect((await user.fetch(`${path}?after=${absent}`)).status).toBe(400);
      expect((await user.fetch(`${path}?after=-1`)).status).toBe(400);
      expect((await user.fetch(`${path}?after=x`)).status).toBe(400);
    }
    stream.abort();
    await user.fetch(`/chat/turns/${turnId}/stop`, { method: 'POST' });
  });
});

describe('A stream that is cut at random bytes', () => {
  /** Longer than the longest event: with shorter pieces, a reader might never get past that one. */
  const longestPiece = 1_500;

  /** Reads exactly `bytes` of a response and breaks off. `ended` says that the response had no more. */
  async function take(stream: EventStream, bytes: number): Promise<{ taken: Buffer; ended: boolean }> {
    const parts: Buffer[] = [];
    let length = 0;
    const reader = stream.response.body?.getReader();
    while (reader !== undefined && length < bytes) {
      const { done, value } = await reader.read();
      if (done) return { taken: Buffer.concat(parts), ended: true };
      parts.push(Buffer.from(value));
      length += value.byteLength;
    }
    stream.abort();
    await reader?.read().catch(() => undefined);
    return { taken: Buffer.concat(parts).subarray(0, bytes), ended: false };
  }

  /**
   * Reads a turn in pieces of random sizes, like a client that keeps whole events and resumes after the last of them.
   */
  async function readInPieces(path: string, largest: number): Promise<{ log: string; cuts: number }> {
    let log = '';
    let lastId = 0;
    for (let cuts = 0; ; cuts++) {
      const stream = await openStream(product.url + path, {
        token: user.token,
        ...(lastId > 0 && { lastEventId: lastId }),
      });
      expect(stream.response.status).toBe(200);
      const { taken, ended } = await take(stream, 1 + Math.floor(Math.random() * largest));
      const text = taken.toString('latin1');
      for (const [event, id] of text.slice(0, text.lastIndexOf('\n\n') + 2).matchAll(/id: (\d+)\ndata: .*\n\n/g)) {
        log += event;
        lastId = Number(id);
      }
      if (ended) return { log: Buffer.from(log, 'latin1').toString('utf8'), cuts };
    }
  }

  full.test('The pieces of 200 cuts make up the log, byte for byte', async () => {
    const tokens = Array.from({ length: 200 }, (_, at) => `“${at}” 漢 `);
    for (let cuts = 0; cuts < 200; ) {
      const stream = await user.send({ content: fake({ tokens, intervalMs: 8 }) });
      const { turnId, threadId } = idsOf(stream);
      stream.abort();
      const path = `/chat/turns/${turnId}/stream`;
      const live = await Promise.all([readInPieces(path, longestPiece), readInPieces(path, longestPiece)]);
      const log = await logOf(turnId);
      const afterwards = await readInPieces(path, longestPiece);
      for (const reader of [...live, afterwards]) {
        expect(reader.log).toBe(log);
        cuts += reader.cuts;
      }
      expect(await user.get(`/api/threads/${threadId}`)).toMatchObject({ activeTurnId: null });
    }
  });
});

describe('After the end of the turn', () => {
  test('204 for a thread without a running turn, and 404 for an unknown thread or turn', async () => {
    const { threadId } = await user.ask({ content: 'Short', id: 'idle chat' });
    for (const name of [threadId, 'idle chat']) {
      const response = await user.fetch(`/chat/stream/${encodeURIComponent(name)}/stream`);
      expect(response.status).toBe(204);
      expect(await response.text()).toBe('');
    }
    expect((await user.fetch('/chat/stream/thr_none/stream')).status).toBe(404);
    // `useChat` with `resume` asks for this when a page opens a new chat.
    expect((await user.fetch('/chat/stream/never-heard-of/stream')).status).toBe(204);
    expect((await user.fetch('/chat/turns/trn_none/stream')).status).toBe(404);
    const empty = await user.fetch(`/api/spaces/${user.spaceId}/threads`, { method: 'POST', body: {} });
    const { id } = (await empty.json()) as { id: string };
    expect((await user.fetch(`/chat/stream/${id}/stream`)).status).toBe(204);
  });

  test('A turn is replayed whole or from a position, and after the last position there is only the end', async () => {
    const { turnId, events, lastId } = await user.ask({ content: 'Again please' });
    const whole = await collect(await user.open(`/chat/turns/${turnId}/stream`));
    expect(whole.events).toEqual(events);
    const rest = await collect(await user.open(`/chat/turns/${turnId}/stream?after=4`));
    expect(rest.events).toEqual(events.slice(4));
    const nothing = await collect(await user.open(`/chat/turns/${turnId}/stream?after=${lastId}`));
    expect(nothing.events).toEqual([{ id: undefined, data: '[DONE]' }]);
  });

  test('A slow reader gets a long answer in one response', async () => {
    const { turnId } = await user.ask({ content: 'At length', modelId: 'long' });
    const log = await logOf(turnId);
    expect(log.length).toBeGreaterThan(3 * 1024 * 1024);
    const reader = await user.open(`/chat/turns/${turnId}/stream`);
    let bytes = 0;
    const text: string[] = [];
    for await (const { data } of reader.events) {
      bytes += data.length;
      // About 20 MB a second: slower than the database, but no reason to cut the reader off.
      if (bytes > 200_000) {
        bytes = 0;
        await delay(10);
      }
      if (data.includes('"text-delta"')) text.push((JSON.parse(data) as { delta: string }).delta);
    }
    expect(text.join('')).toBe(longTokens.join(''));
    expect(eventsIn(reader.raw().toString())).toBe(log);
  });

  test('After the log is purged, the stream is rebuilt from the message, and a position gets 410', async () => {
    const content = fake({ reasoning: ['Let me think.'], tokens: ['An ', 'answer.'] });
    const { turnId, threadId, text } = await user.ask({ content, outboxItemId: 'kept' });
    const { database } = product.environment;
    await database.sequelize.query('UPDATE turns SET ended_at = ended_at - INTERVAL 8 DAY WHERE id = ?', {
      replacements: [turnId],
    });
    // The sweeper purges the log and leaves no chunk behind.
    await waitFor('the log to be purged', async () => (await logOf(turnId)) === '');

    const rebuilt = await collect(await user.open(`/chat/turns/${turnId}/stream`));
    expect(rebuilt.text).toBe(text);
    expect(rebuilt.complete).toBe(true);
    expect(rebuilt.chunks.map(({ type }) => type)).toEqual([
      'start',
      'start-step',
      ...['reasoning-start', 'reasoning-delta', 'reasoning-end'],
      ...['text-start', 'text-delta', 'text-end'],
      'finish',
    ]);
    const { assistantMessageId } = await user.turn(turnId);
    expect(rebuilt.chunks[0]).toMatchObject({ messageId: assistantMessageId });
    expect((await user.ask({ content, outboxItemId: 'kept' })).events).toEqual(rebuilt.events);

    const gone = await user.open(`/chat/turns/${turnId}/stream`, { lastEventId: 3 });
    expect(gone.response.status).toBe(410);
    expect(await gone.response.json()).toMatchObject({ code: 'LOG_EXPIRED' });
    expect((await user.messages(threadId)).map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  test('a younger log is kept', async () => {
    const { turnId } = await user.ask({ content: 'Young' });
    const { database } = product.environment;
    await database.sequelize.query('UPDATE turns SET ended_at = ended_at - INTERVAL 6 DAY WHERE id = ?', {
      replacements: [turnId],
    });
    const older = await user.ask({ content: 'Old' });
    await database.sequelize.query('UPDATE turns SET ended_at = ended_at - INTERVAL 8 DAY WHERE id = ?', {
      replacements: [older.turnId],
    });
    await waitFor('the older log to be purged', async () => (await logOf(older.turnId)) === '');
    expect(await logOf(turnId)).not.toBe('');
  });
});
