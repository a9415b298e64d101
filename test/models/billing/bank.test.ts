import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { newId } from '../../../base/ids.ts';
import { audit } from '../../../models/billing/audit.ts';
import { topUp } from '../../../models/billing/credits.ts';
import { release } from '../../../models/billing/holds.ts';
import { accounts, sources, uses } from '../../../models/billing/ledger.ts';
import { transaction } from '../../../models/database/database.ts';
import { expectBooksInOrder } from '../../builders/billing.ts';
import { plainEnvironment } from '../../support/atrium.ts';
import { createTestEnvironment, type TestEnvironment } from '../../support/environment.ts';
import { start, type TestProcess } from '../../support/processes.ts';
import { seededRandom } from '../../support/random.ts';
import { sizeOf } from '../../support/size.ts';

// 20 clients transfer and spend credits in processes that are killed again and again. Every read adds up, and no
// balance is ever negative.

const durationMs = sizeOf('BANK_SECONDS', 6) * 1_000;
const tellers = 4;
const clientsPerTeller = 5;
const spaceCount = 8;
const creditsPerSpace = 20;

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await createTestEnvironment();
});
afterAll(() => environment.close());

test(
  `Every read of the bank adds up for ${durationMs / 1_000} s while clients are killed`,
  async () => {
    const { database } = environment;
    const random = seededRandom('bank');
    const spaces = Array.from({ length: spaceCount }, () => newId('space'));
    for (const spaceId of spaces) {
      const payment = { spaceId, sourceId: `checkout:${spaceId}`, micro: creditsPerSpace * 1_000_000 };
      await transaction(database, (tx) => topUp(tx, payment));
    }
    const program = join(import.meta.dirname, 'bankTeller.ts');
    const open = (): TestProcess =>
      start(process.execPath, [program, String(clientsPerTeller), String(random(0, 2 ** 32)), ...spaces], {
        env: plainEnvironment(environment.environment),
      });
    const running = Array.from({ length: tellers }, open);
    const all = [...running];
    const deadline = performance.now() + durationMs;
    let [reads, kills] = [0, 0];
    let nextKill = performance.now() + 2_000;
    const done = () => all.reduce((sum, teller) => sum + teller.stdout().length, 0);
    // A slow machine gets more time, so that enough happens.
    while (performance.now() < deadline || kills === 0 || done() <= 50) {
      await expectBalanced();
      reads++;
      if (performance.now() > nextKill) {
        const at = random(0, tellers);
        const killed = running[at] as TestProcess;
        killed.child.kill('SIGKILL');
        await killed.exited;
        const next = open();
        running[at] = next;
        all.push(next);
        kills++;
        nextKill = performance.now() + random(1_000, 3_000);
      }
      await delay(5);
    }
    for (const teller of running) teller.child.kill('SIGKILL');
    const ends = await Promise.all(all.map(({ exited }) => exited));
    // The processes end only because they are killed, not by an error.
    expect(ends.map(({ signal }) => signal)).toEqual(all.map(() => 'SIGKILL'));

    const { transactions, entries } = await audit(database);
    process.stdout.write(
      `bank: ${done()} done, ${transactions} transactions, ${entries} entries, ${reads} reads, ${kills} kills\n`,
    );
    await expectBooksInOrder(database);
    await sweepOpenHolds();
    await expectBooksInOrder(database);
    const [rows] = await database.pool.query(
      'SELECT SUM(paid) AS paid, SUM(sent) AS sent, SUM(received) AS received FROM billing_balances',
    );
    const [sums] = rows as { paid: string; sent: string; received: string }[];
    expect(Number(sums?.paid)).toBe(spaceCount * creditsPerSpace * 1_000_000);
    expect(sums?.sent).toBe(sums?.received);
  },
  durationMs + 180_000,
);

/** One statement reads one moment, so its sums must match while credits move. */
async function expectBalanced(): Promise<void> {
  const [rows] = await environment.database.pool.query(
    `SELECT SUM(${uses.join(' + ')}) - SUM(${sources.join(' + ')}) AS difference, SUM(sent) - SUM(received) AS moving,
            MIN(LEAST(${accounts.join(', ')})) AS least FROM billing_balances`,
  );
  const [row] = rows as { difference: string; moving: string; least: number }[];
  expect([Number(row?.difference), Number(row?.moving), Number(row?.least) >= 0]).toEqual([0, 0, true]);
}

/** Releases the holds that killed clients left open, as the sweeper does. */
async function sweepOpenHolds(): Promise<void> {
  const { database } = environment;
  const [rows] = await database.pool.query("SELECT id, space_id AS spaceId FROM billing_holds WHERE status = 'open'");
  for (const { id, spaceId } of rows as { id: string; spaceId: string }[]) {
    await transaction(database, (tx) => release(tx, spaceId, id));
  }
  const [left] = await database.pool.query('SELECT CAST(SUM(reserved) AS SIGNED) AS reserved FROM billing_balances');
  expect(left).toEqual([{ reserved: 0 }]);
}
