import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { newId } from '../../../base/ids.ts';
import { settle } from '../../../models/billing/holds.ts';
import { transaction } from '../../../models/database/database.ts';
import { buildCredits } from '../../builders/billing.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { startReceiver } from '../../builders/webhookReceiver.ts';
import { startMailServer, type TestMailServer } from '../../fakes/mailServer.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

const modelsFile = join(temporaryFolder(), 'models.json');
const pricingRates = [{ label: 'Request', creditsPerUnit: 1, unit: 'request' }];
writeFileSync(modelsFile, JSON.stringify({ models: [{ id: 'calls', provider: 'compatible', pricingRates }] }));

let mailServer: TestMailServer;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let product: TestProduct;
beforeAll(async () => {
  [mailServer, receiver] = await Promise.all([startMailServer(), startReceiver()]);
  product = await buildProduct({
    ...hurriedSweeper,
    ...{ ATRIUM_SMTP_URL: mailServer.url, ATRIUM_SMTP_FROM: 'Atrium <atrium@example.com>' },
    ATRIUM_BILLING_LOW_CREDITS: '5',
    ATRIUM_MODELS_FILE: modelsFile,
    ATRIUM_EGRESS_ALLOW_INTERNAL: receiver.host,
  });
});
afterAll(async () => {
  await product.close();
  await Promise.all([mailServer.close(), receiver.close()]);
});

async function spend({ spaceId }: ChatUser, credits: number): Promise<void> {
  const turnId = newId('turn');
  const call = { id: `${turnId}:0`, spaceId, userId: 'usr_1', turnId, modelId: 'm', enforced: false };
  await transaction(product.environment.database, (tx) => settle(tx, { ...call, cost: credits * 1_000_000 }));
}

test('Owners get one mail each time their credits run low', async () => {
  const user = await product.user('low');
  const editor = await product.user('editor');
  await product.identity.members.add(user.spaceId, editor.email, 'editor');
  const told = (to: string) => mailServer.mails.filter((mail) => mail.to.includes(to));
  await buildCredits(product.environment.database, 10, user.spaceId);
  await spend(user, 8);
  const [mail] = await waitFor('the mail', () => told(user.email).length > 0 && told(user.email));
  expect(mail?.text).toContain('2.00 credits left');
  const isLow = async () => (await user.get<{ lowBalance: boolean }>(`/api/billing/${user.spaceId}`)).lowBalance;
  expect(await isLow()).toBe(true);

  await buildCredits(product.environment.database, 10, user.spaceId);
  const { pool } = product.environment.database;
  await waitFor('a sweep to see the new credits', async () => {
    const [rows] = await pool.query('SELECT low_since AS since FROM billing_balances WHERE space_id = ?', [
      user.spaceId,
    ]);
    return (rows as { since: Date | null }[])[0]?.since === null;
  });
  expect(await isLow()).toBe(false);
  await spend(user, 11);
  await waitFor('the second mail', () => told(user.email).length === 2);
  expect(told(editor.email)).toEqual([]);
});

test('A webhook endpoint gets credits.low when turns have used up most credits', async () => {
  const user = await product.user('turns');
  await buildCredits(product.environment.database, 5.5, user.spaceId);
  const made = await user.fetch(`/api/spaces/${user.spaceId}/webhook-endpoints`, {
    method: 'POST',
    body: { url: receiver.url, events: ['credits.low'] },
  });
  const { secret } = (await made.json()) as { secret: string };
  for (const content of ['Hello', 'And again']) await user.ask({ content, modelId: 'calls' });
  const received = await waitFor('the webhook', () => receiver.received[0]);
  expect(new Webhook(secret).verify(received.body, received.headers as Record<string, string>)).toEqual({
    type: 'credits.low',
    timestamp: expect.any(String),
    data: { spaceId: user.spaceId, balance: expect.any(Number) },
  });
  // The next sweep may come between the two turns, or after both.
  const { balance } = (JSON.parse(received.body) as { data: { balance: number } }).data;
  expect([3.5, 4.5]).toContain(balance);
});
