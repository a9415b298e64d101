import type { ChatUser } from '../test/builders/chat.ts';
import { buildProduct } from '../test/builders/product.ts';
import { startTestStack, stopTestStack } from '../test/support/testStack.ts';
import { fillThread } from './support/fillThread.ts';
import { quantile, timed } from './support/times.ts';

/**
 * Measures how one user's 200 concurrent requests slow another user's small GET: `npx node bench/fairness.ts`. For each
 * kind of request, prints the time of one alone, and the other user's GET alone and beside them, without and with fair
 * shares.
 */
const atOnce = 200;
const messages = 1_000;
const samples = 40;
/** Stops sampling after this time, for requests that delay the other user by seconds. */
const longestMs = 6_000;
const off = { ATRIUM_REQUESTS_AT_ONCE: '100000', ATRIUM_REQUESTS_PER_USER_AT_ONCE: '100000' };

interface Kind {
  name: string;
  send(user: ChatUser, threadId: string): Promise<Response>;
}

const kinds: Kind[] = [
  { name: 'GET /api/me', send: (user) => user.fetch('/api/me') },
  { name: 'a page of messages', send: (user, id) => user.fetch(`/api/threads/${id}/messages?limit=100`) },
  { name: 'export of a thread', send: (user, id) => user.fetch(`/api/threads/${id}/export`) },
  { name: 'search', send: (user) => user.fetch(`/api/spaces/${user.spaceId}/threads/search?q=people`) },
  {
    name: 'a message (to its stream)',
    send: (user, threadId) => user.fetch('/chat/stream', { method: 'POST', body: { threadId, content: 'Go on' } }),
  },
];

async function drain(response: Response): Promise<void> {
  await response.arrayBuffer();
}

async function small(user: ChatUser): Promise<number[]> {
  const times: number[] = [];
  const begin = performance.now();
  for (let sample = 0; sample < samples && performance.now() - begin < longestMs; sample++)
    times.push(await timed(async () => drain(await user.fetch('/api/me'))));
  return times;
}

/** Times of the other user's requests while `atOnce` requests run all the time. */
async function beside(work: () => Promise<void>, other: ChatUser): Promise<{ times: number[]; perSecond: number }> {
  let isOver = false;
  let done = 0;
  const begin = performance.now();
  const busy = Array.from({ length: atOnce }, async () => {
    while (!isOver) {
      await work();
      done++;
    }
  });
  const times = await small(other);
  isOver = true;
  const seconds = (performance.now() - begin) / 1_000;
  const perSecond = done / seconds;
  await Promise.all(busy);
  return { times, perSecond };
}

const shown = (times: number[]) => `${quantile(times, 0.5).toFixed(0)} ms (p95 ${quantile(times, 0.95).toFixed(0)} ms)`;

await startTestStack();
try {
  for (const [title, settings] of [
    ['without fair shares', off],
    ['with fair shares', {}],
  ] as const) {
    const product = await buildProduct({ ATRIUM_RATE_LIMIT_PER_MINUTE: '0', ATRIUM_LOG_LEVEL: 'warn', ...settings });
    try {
      const [user, other] = [await product.user(), await product.user()];
      const { threadId } = await user.ask({ content: 'The first message' });
      await fillThread(product.environment.database, threadId, messages);
      const alone = await small(other);
      process.stdout.write(`${title}: the other's GET alone ${shown(alone)}\n`);
      for (const { name, send } of kinds) {
        const probe = await send(user, threadId);
        await drain(probe);
        const one = await timed(async () => drain(await send(user, threadId)));
        const { times, perSecond } = await beside(async () => drain(await send(user, threadId)), other);
        const ratio = quantile(times, 0.5) / quantile(alone, 0.5);
        process.stdout.write(
          `  ${name} (${probe.status}, ${one.toFixed(0)} ms alone, ${perSecond.toFixed(0)}/s): ${shown(times)}, × ${ratio.toFixed(1)}\n`,
        );
      }
    } finally {
      await product.close();
    }
  }
} finally {
  await stopTestStack();
}
