import { settle } from '../../../models/billing/holds.ts';
import { transaction } from '../../../models/database.ts';
import { newId } from '../../../models/ids.ts';
import { buildCredits } from '../../builders/billing.ts';
import type { ChatUser } from '../../builders/chat.ts';
import { buildProduct, type TestProduct } from '../../builders/product.ts';
import { startMailServer, type TestMailServer } from '../../fakes/mailServer.ts';
import { hurriedSweeper } from '../../support/productSettings.ts';
import { waitFor } from '../../support/waitFor.ts';

let mailServer: TestMailServer;
let product: TestProduct;
beforeAll(async () => {
  mailServer = await startMailServer();
  product = await buildProduct({
    ...hurriedSweeper,
    ...{ ATRIUM_SMTP_URL: mailServer.url, ATRIUM_SMTP_FROM: 'Atrium <atrium@example.com>' },
    ATRIUM_BILLING_LOW_CREDITS: '5',
  });
}, 60_000);
afterAll(async () => {
  await product.close();
  await mailServer.close();
});

async function spend({ spaceId }: ChatUser, credits: number): Promise<void> {
  const turnId = newId('turn');
  const call = { id: `${turnId}:0`, spaceId, userId: 'usr_1', turnId, modelId: 'm', enforced: false };
  await transaction(product.environment.database, (tx) => settle(tx, { ...call, cost: credits * 1_000_000 }));
}

test('owners are told once that few credits are left, and again when it happens again', async () => {
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
  await waitFor('a sweep to see that there are more', async () => {
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
