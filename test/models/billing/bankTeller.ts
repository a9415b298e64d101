import { DomainError } from '../../../base/errors.ts';
import { newId } from '../../../base/ids.ts';
import { loadConfig } from '../../../config/index.ts';
import { transfer } from '../../../models/billing/credits.ts';
import { release, reserve, settle } from '../../../models/billing/holds.ts';
import { openDatabase, transaction } from '../../../models/database/database.ts';
import { randomOf } from '../../support/random.ts';

/**
 * A process of the bank test. Its clients transfer and spend until the test kills it. Arguments: the number of clients,
 * their seed, and their spaces.
 */
const [clients = '', seed = '', ...spaces] = process.argv.slice(2);
const random = randomOf(Number(seed));
const database = openDatabase(loadConfig());

await Promise.all(Array.from({ length: Number(clients) }, client));

async function client(): Promise<void> {
  for (;;) {
    try {
      await (random(0, 3) === 0 ? move() : spend());
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'paymentRequired') throw error;
    }
    process.stdout.write('.');
  }
}

async function move(): Promise<void> {
  const [from, to] = [pick(), pick()];
  const sourceId = `transfer:${newId('ledgerTransaction')}`;
  await transaction(database, (tx) => transfer(tx, { from, to, micro: random(1, 500_000), sourceId }));
}

/** Reserves credits, then settles or releases them, or leaves the hold to the sweep. */
async function spend(): Promise<void> {
  const atMost = random(1, 400_000);
  const turnId = newId('turn');
  const call = { id: `${turnId}:0`, spaceId: pick(), userId: 'usr_1', turnId, modelId: 'm' };
  const enforced = true;
  await transaction(database, (tx) => reserve(tx, { ...call, inputTokens: 1, atLeast: 1, atMost, enforced }));
  const end = random(0, 10);
  // Now and then a call costs more than its hold, which makes a debt.
  const cost = random(0, Math.floor(atMost * 1.1) + 1);
  if (end < 8) await transaction(database, (tx) => settle(tx, { ...call, cost, enforced }));
  else if (end < 9) await transaction(database, (tx) => release(tx, call.spaceId, call.id));
}

function pick(): string {
  return spaces[random(0, spaces.length)] ?? '';
}
