import { setTimeout as delay } from 'node:timers/promises';
import { settleEvent } from '../activities/billing/settlement.ts';
import { newId } from '../base/ids.ts';
import { loadConfig } from '../config/index.ts';
import { createPayments } from '../integrations/billing/index.ts';
import { insertCheckout, markOpen } from '../models/billing/checkouts.ts';
import { createDevelopmentPayments } from '../models/billing/developmentPayments.ts';
import { keepEvent } from '../models/billing/paymentEvents.ts';
import { type Database, openDatabase, transaction } from '../models/database/database.ts';
import { type Fields, startFakeStripe } from '../test/fakes/stripeServer.ts';
import { runStatement } from '../test/support/environment.ts';
import { startAtrium } from './support/atrium.ts';
import { quantile } from './support/times.ts';

/**
 * Measures how fast payments are settled: `npx node bench/billing.ts`. The reference is one insert per commit of a row
 * the size of a notification, on the same MySQL, in the same run, over as many connections. A settlement writes a
 * notification, a workflow with an activity, the ledger (a transaction and two entries), a grant, the balances, the
 * checkout and the notification's mark.
 */
const notifications = 2_000;
const atOnce = 16;
const spaces = Array.from({ length: 50 }, () => newId('space'));
const amountMinor = 1_000;

interface Measured {
  perSecond: number;
  tookMs: number[];
}

/** Runs `work` for each number below `count`, with `atOnce` running. */
async function measure(count: number, work: (index: number) => Promise<unknown>): Promise<Measured> {
  const tookMs: number[] = [];
  let next = 0;
  const begun = performance.now();
  const lane = async () => {
    for (let index = next++; index < count; index = next++) {
      const at = performance.now();
      await work(index);
      tookMs.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return { perSecond: (count / (performance.now() - begun)) * 1_000, tookMs };
}

async function makeSession(database: Database, index: number): Promise<Fields & { id: string }> {
  const id = newId('checkout');
  const now = new Date();
  const session = { id: `cs_${id}`, url: 'https://example.org' };
  await transaction(database, async (tx) => {
    await insertCheckout(tx, {
      ...{
        id,
        kind: 'topUp',
        spaceId: spaces[index % spaces.length] ?? '',
        userId: 'usr_1',
        amountMinor,
        currency: 'usd',
      },
      ...{ microCredits: 1_000_000_000, provider: 'stripe', operationId: `op_${id}`, createdAt: now, expiresAt: now },
    });
    await markOpen(tx, id, session);
  });
  return {
    ...{ id: session.id, object: 'checkout.session', client_reference_id: id, metadata: { checkoutId: id } },
    ...{
      amount_total: amountMinor,
      currency: 'usd',
      status: 'complete',
      payment_status: 'paid',
      payment_intent: `pi_${id}`,
    },
  };
}

const ms = (value: number) => `${value.toFixed(1)} ms`;
const rate = (name: string, { perSecond, tookMs }: Measured, unit: string) =>
  `  ${name.padEnd(38)} ${perSecond.toFixed(0).padStart(6)} ${unit}, p50 ${ms(quantile(tookMs, 0.5))}, p99 ${ms(quantile(tookMs, 0.99))}`;

const stripe = await startFakeStripe();
const atrium = await startAtrium({
  ...stripe.environment,
  ATRIUM_DATABASE_POOL_SIZE: '20',
  ATRIUM_SWEEP_GRACE_SECONDS: '3600',
});
const config = loadConfig(atrium.environment);
const database = openDatabase(config);
try {
  const payload = JSON.stringify({
    id: 'evt',
    type: 'checkout.session.completed',
    data: { object: await makeSession(database, 0) },
  });
  await runStatement(
    atrium.environment.ATRIUM_DATABASE_MIGRATION_URL,
    'CREATE TABLE bench_rows (id VARCHAR(190) NOT NULL PRIMARY KEY, payload MEDIUMTEXT NOT NULL, at DATETIME(3) NOT NULL)',
  );
  const insert = () => database.pool.query('INSERT INTO bench_rows VALUES (?)', [[newId('hold'), payload, new Date()]]);
  await measure(500, insert);
  const inserted = await measure(notifications, insert);

  const direct: string[] = [];
  const payments = createPayments(config, createDevelopmentPayments(database));
  for (let index = 0; index < notifications; index++) {
    const event = { id: `evt_direct_${index}`, type: 'checkout.session.completed', provider: 'stripe' };
    const object = await makeSession(database, index);
    await keepEvent(database, { ...event, payload: JSON.stringify({ ...event, data: { object } }) });
    direct.push(event.id);
  }
  // Consecutive payments are of different spaces, as in practice.
  const booked = await measure(notifications, (index) => settleEvent({ database, payments }, direct[index] ?? ''));

  const sessions: Fields[] = [];
  for (let index = 0; index < notifications; index++) sessions.push(await makeSession(database, index));
  const begun = performance.now();
  const acknowledged = await measure(notifications, async (index) => {
    const answer = await stripe.notify(atrium.url, 'checkout.session.completed', sessions[index] ?? {});
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`A notification was answered with ${answer.status}.`);
  });
  for (let waiting = 1; waiting > 0; await delay(20)) {
    const [rows] = await database.pool.query("SELECT COUNT(*) AS n FROM payment_events WHERE status = 'received'");
    waiting = (rows as { n: number }[])[0]?.n ?? 0;
  }
  const settledPerSecond = (notifications / (performance.now() - begun)) * 1_000;

  console.log(`${notifications} payments, ${atOnce} at once, ${spaces.length} spaces`);
  console.log(rate('MySQL alone, one row a commit', inserted, 'rows/s'));
  console.log(rate('booked in the ledger, without workflow', booked, '/s'));
  console.log(rate('notifications acknowledged', acknowledged, '/s'));
  console.log(
    `  ${'settled, from first notification to last'.padEnd(38)} ${settledPerSecond.toFixed(0).padStart(6)} /s`,
  );
  console.log(
    `  of MySQL's own insert rate: booked ${(booked.perSecond / inserted.perSecond).toFixed(2)}, ` +
      `acknowledged ${(acknowledged.perSecond / inserted.perSecond).toFixed(2)}, settled ${(settledPerSecond / inserted.perSecond).toFixed(2)}`,
  );
} finally {
  await database.close();
  await atrium.stop();
  await stripe.stop();
}
