import { idsOf } from '../builders/chat.ts';
import { buildProduct, fake, type TestProduct } from '../builders/product.ts';
import { buildTurnLog } from '../builders/turnLog.ts';
import { seededRandom } from '../support/random.ts';
import { untilChunk } from '../support/sseClient.ts';

const cuts = 200;
const words = Array.from({ length: 3_000 }, (_, word) => (word % 7 === 0 ? `grüße 🌱${word} ` : `w${word} `));

let product: TestProduct;

beforeAll(async () => {
  product = await buildProduct();
});

afterAll(async () => {
  await product.close();
});

it(`A client that is cut off ${cuts} times at random bytes gets the log byte for byte`, async () => {
  const user = await product.user();
  const stream = await user.send({ content: fake({ tokens: words, intervalMs: 2 }), modelId: 'fake-1' });
  const { turnId } = idsOf(stream);
  await untilChunk(stream, ({ type }) => type === 'text-delta');
  stream.abort();

  const random = seededRandom('resume');
  const lines: string[] = [];
  let done = false;
  for (let cut = 0; !done; cut++) {
    const request = { headers: { authorization: `Bearer ${user.token}`, 'last-event-id': String(lines.length) } };
    const response = await fetch(`${product.url}/chat/turns/${turnId}/stream`, request);
    expect(response.status).toBe(200);
    const bytes = await readBytes(response, cut < cuts ? random(1, 3_000) : Number.POSITIVE_INFINITY);
    // A client uses only whole events. An event that was cut comes again.
    const whole = bytes.subarray(0, bytes.lastIndexOf('\n\n') + 2).toString('utf8');
    for (const event of whole.split('\n\n')) {
      if (event === 'data: [DONE]') done = true;
      const match = /^id: (\d+)\ndata: (.*)$/.exec(event);
      if (match === null) continue;
      expect(Number(match[1])).toBe(lines.length + 1);
      lines.push(match[2] ?? '');
    }
  }

  const { turnLog } = buildTurnLog(product.environment.database);
  const log = (await turnLog.read(turnId, 0, 100_000)).map((segment) => segment.lines).join('\n');
  expect(lines.join('\n')).toBe(log);
  expect(await user.answerOf(await user.turn(turnId))).toBe(words.join(''));
  await turnLog.close();
});

/** Reads this many bytes, then breaks the connection. */
async function readBytes(response: Response, count: number): Promise<Buffer> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  for (let left = count; left > 0 && reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks);
    chunks.push(value.subarray(0, left));
    left -= value.length;
  }
  await reader?.cancel();
  return Buffer.concat(chunks);
}
