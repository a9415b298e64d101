import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { chatModels } from '../../../models/chat/models.ts';
import { type ChatUser, idsOf } from '../../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../../builders/product.ts';
import { collect, type EventStream, openStream } from '../../support/sseClient.ts';
import { waitFor } from '../../support/waitFor.ts';

/** Readers that lose access, that read slowly, or that read a silent stream. */
const endless = { tokens: 5, fail: { how: 'stall' as const } };
const large = Array.from({ length: 160 }, (_, at) => `${at} ${'y'.repeat(64 * 1024)}`);
let product: TestProduct;
let user: ChatUser;
let quiet: EventStream;
beforeAll(async () => {
  const settings = {
    ATRIUM_COMPATIBLE_MODELS: 'fake-1,large',
    ATRIUM_STREAM_HEARTBEAT_SECONDS: '1',
    ATRIUM_STREAM_CHECK_SECONDS: '1',
  };
  product = await buildProduct(settings, ({ body }) =>
    body.model === 'large' ? { tokens: large, intervalMs: 5 } : undefined,
  );
  user = await product.user();
  quiet = (await quietStream(user)).stream;
  void collect(quiet);
});
afterAll(() => product.close());

/** A stream that sends nothing for the moment. */
async function quietStream(reader: ChatUser) {
  const stream = await reader.send({ content: fake(endless) });
  await collect(stream, ({ text }) => text.includes('w4'));
  return { stream, ...idsOf(stream) };
}

/** The ways to lose access. Each returns the credential that is about to lose it. */
const revocations: Record<string, (reader: ChatUser) => Promise<{ token: string; revoke(): Promise<unknown> }>> = {
  'a session that is logged out': async (reader) => ({
    token: reader.token,
    revoke: () => reader.fetch('/auth/logout', { method: 'POST' }),
  }),
  'an API key that is revoked': async (reader) => {
    const made = await reader.fetch('/api/keys', { method: 'POST', body: { name: 'reader', scopes: ['chat'] } });
    const { id, key } = (await made.json()) as { id: string; key: string };
    return { token: key, revoke: () => reader.fetch(`/api/keys/${id}`, { method: 'DELETE' }) };
  },
  'a member who is removed': async (reader) => ({
    token: reader.token,
    async revoke() {
      const heir = await product.user();
      await product.identity.members.add(reader.spaceId, heir.email, 'owner');
      await product.identity.members.remove(reader.spaceId, reader.id);
    },
  }),
};

test('a reader who loses access loses the open stream; the turn goes on', async () => {
  const cases = Object.entries(revocations).map(async ([name, prepare]) => {
    const owner = await product.user();
    const { turnId } = await quietStream(owner);
    const { token, revoke } = await prepare(owner);
    const reader = await openStream(`${product.url}/chat/turns/${turnId}/stream`, { token });
    expect([name, reader.response.status]).toEqual([name, 200]);
    const ended = collect(reader);
    await revoke();
    const { complete, text } = await ended;
    expect([name, complete, text]).toEqual([name, false, 'w0 w1 w2 w3 w4 ']);
    const again = await openStream(`${product.url}/chat/turns/${turnId}/stream`, { token });
    expect([401, 404]).toContain(again.response.status);
    expect((await chatModels(product.environment.database).Turn.findByPk(turnId))?.status).toBe('running');
  });
  await Promise.all(cases);
});

test('A reader that takes nothing is cut off, and gets the rest when it comes back', async () => {
  const sent = request(`${product.url}/chat/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' },
  });
  sent.end(JSON.stringify({ content: 'x', modelId: 'large' }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const turnId = String(response.headers['x-turn-id']);
  // Nothing is read, so buffers fill up, first on the way and then in the server, which cuts the response off.
  response.pause();
  const turn = await user.ended(turnId);
  expect(turn.status).toBe('completed');
  let taken = '';
  response.setEncoding('utf8').on('data', (text: string) => {
    taken += text;
  });
  // Node's client reports a response that breaks off as an error.
  response.on('error', () => undefined).resume();
  await waitFor('the cut', () => response.closed);
  expect(response.complete).toBe(false);
  expect(taken).not.toContain('[DONE]');

  const whole = taken.slice(0, taken.lastIndexOf('\n\n'));
  const last = Number([...whole.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1]);
  expect(last).toBeLessThan(turn.lastSeq);
  const rest = await collect(await user.open(`/chat/turns/${turnId}/stream`, { lastEventId: last }));
  expect(rest.complete).toBe(true);
  const deltas = [...whole.matchAll(/^data: (\{"type":"text-delta".*)$/gm)].map(
    ([, data]) => JSON.parse(data ?? '') as { delta: string },
  );
  expect(deltas.map(({ delta }) => delta).join('') + restText(rest.chunks)).toBe(large.join(''));
});

const restText = (chunks: { type: string; delta?: string }[]) =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');

test('A silent stream sends heartbeats, which are not events', async () => {
  await waitFor('a heartbeat', () => quiet.raw().includes('\n\n: hb\n\n'));
  quiet.abort();
});
