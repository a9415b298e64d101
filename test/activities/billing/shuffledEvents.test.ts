import { setTimeout as delay } from 'node:timers/promises';
import { newId } from '../../../base/ids.ts';
import { settle } from '../../../models/billing/holds.ts';
import { transaction } from '../../../models/database/database.ts';
import { balancesOf, expectBooksInOrder } from '../../builders/billing.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { type FakeStripe, startFakeStripe } from '../../fakes/stripeServer.ts';
import { runStatement } from '../../support/environment.ts';
import { seededRandom } from '../../support/random.ts';
import { sizeOf } from '../../support/size.ts';
import { waitFor } from '../../support/waitFor.ts';
import { type PaymentStory, tellStory } from './paymentStory.ts';

// All kinds of notifications, shuffled, each sent up to five times, while handlers fail and the process is killed.

const eventCount = sizeOf('PAYMENT_EVENTS', 80);
const killCount = sizeOf('PAYMENT_KILLS', 1);
const spaceCount = 10;
const senders = 16;
const spentMicro = 3_000_000_000;
const longestMs = 60_000 + eventCount * 250;
const random = seededRandom('shuffled events');

let stripe: FakeStripe;
let product: TestProduct;
beforeAll(async () => {
  stripe = await startFakeStripe();
  product = await buildProduct({ ...stripe.environment, ATRIUM_HEARTBEAT_TIMEOUT_SECONDS: '2' });
});
afterAll(async () => {
  await product.close();
  await stripe.stop();
});

test(
  `Each of ${eventCount} notifications takes effect once, and the books balance`,
  async () => {
    const { database } = product.environment;
    const spaces = Array.from({ length: spaceCount }, () => newId('space'));
    const stories = await tellStories(spaces);
    const events = stories.flatMap((story) => story.events.map((event) => ({ ...event, id: `evt_${newId('hold')}` })));
    for (const [at, spaceId] of spaces.entries()) {
      // Spent before the payments, so that payments pay the debt first.
      const call = { id: `${spaceId}:0`, spaceId, userId: 'u', turnId: newId('turn'), modelId: 'm' };
      await transaction(database, (tx) => settle(tx, { ...call, cost: at % 2 === 0 ? spentMicro : 0, enforced: true }));
    }
    stripe.failureShare = 0.1;
    const { ATRIUM_DATABASE_MIGRATION_URL: ownerUrl } = product.environment.environment;
    await runStatement(
      ownerUrl,
      `CREATE TRIGGER a_tenth_fails BEFORE UPDATE ON payment_events FOR EACH ROW
       IF RAND() < 0.1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'asked for'; END IF`,
    );
    const deliveries = shuffled(events.flatMap((event) => Array.from({ length: random(1, 6) }, () => event)));
    await whileKilling(deliver(deliveries));
    await waitFor('all notifications to be settled', async () => (await unsettled()) === 0, { timeoutMs: longestMs });
    await runStatement(ownerUrl, 'DROP TRIGGER a_tenth_fails');

    for (const [at, spaceId] of spaces.entries()) {
      const paid = stories
        .filter((story) => story.spaceId === spaceId)
        .reduce((sum, { keptMicro }) => sum + keptMicro, 0);
      const spent = at % 2 === 0 ? spentMicro : 0;
      const { available = 0, debt = 0, ...rest } = await balancesOf(database, spaceId);
      const expected = Object.fromEntries(Object.entries({ spent, paid }).filter(([, micro]) => micro > 0));
      expect({ spaceId, left: available - debt, ...rest }).toEqual({ spaceId, left: paid - spent, ...expected });
    }
    await expectBooksInOrder(database);
    const [rows] = await database.pool.query('SELECT COUNT(*) AS kept FROM payment_events');
    expect((rows as { kept: number }[])[0]?.kept).toBe(events.length);
  },
  longestMs * 2,
);

async function tellStories(spaces: string[]): Promise<PaymentStory[]> {
  const stories: PaymentStory[] = [];
  for (let told = 0; told < eventCount; ) {
    const story = await tellStory(product.environment.database, stripe, spaces[stories.length % spaceCount] ?? '');
    stories.push(story);
    told += story.events.length;
  }
  return stories;
}

/** Sends all deliveries, a few at a time, and repeats each until it is acknowledged. */
async function deliver(deliveries: { type: string; object: Parameters<FakeStripe['notify']>[2]; id: string }[]) {
  const waiting = [...deliveries];
  const lane = async () => {
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      const { type, object, id } = one;
      await waitFor(
        'an acknowledgement',
        async () => {
          const answer = await stripe.notify(product.url, type, object, id).catch(() => undefined);
          return answer?.status === 200;
        },
        { timeoutMs: longestMs },
      );
    }
  };
  await Promise.all(Array.from({ length: senders }, lane));
}

async function whileKilling(work: Promise<void>): Promise<void> {
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  finished.catch(() => undefined);
  let killed = 0;
  while (killed < killCount && !done) {
    await delay(random(500, 3_000));
    await product.process.kill('SIGKILL');
    await product.restart();
    killed++;
  }
  await finished;
  expect(killed).toBeGreaterThan(0);
}

async function unsettled(): Promise<number> {
  const [rows] = await product.environment.database.pool.query(
    "SELECT COUNT(*) AS waiting FROM payment_events WHERE status = 'received'",
  );
  return (rows as { waiting: number }[])[0]?.waiting ?? -1;
}

function shuffled<T>(items: readonly T[]): T[] {
  const order = [...items];
  for (let at = order.length - 1; at > 0; at--) {
    const other = random(0, at + 1);
    [order[at], order[other]] = [order[other] as T, order[at] as T];
  }
  return order;
}
