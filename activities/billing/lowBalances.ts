import { findLowBalances, type LowBalance, noteLow } from '../../models/billing/lowBalances.ts';
import { toCredits } from '../../models/billing/money.ts';
import { transaction } from '../../models/database/database.ts';
import { noteEvent } from '../../models/webhooks/events.ts';
import type { BillingDeps } from './deps.ts';

const spacesPerSweep = 200;
/** A mail about a low balance is outdated after this. */
const mailDays = 3;

/**
 * Tells the owners of each space that is low on credits, once until it has enough again. The mark and the mails are one
 * commit.
 */
export async function noticeLowBalances(deps: BillingDeps): Promise<void> {
  const { database, config, logger, mailer, mails } = deps;
  for (const low of await findLowBalances(database, config.billing.lowBalanceMicro, spacesPerSweep)) {
    const { spaceId, ownerEmails } = low;
    const until = new Date(Date.now() + mailDays * 86_400_000);
    const recipients = mailer === undefined ? [] : ownerEmails;
    const sealed = await Promise.all(recipients.map((to) => mails.seal({ to, ...noticeOf(low) }, until)));
    await transaction(database, async (tx) => {
      if (!(await noteLow(tx, spaceId))) return;
      for (const mail of sealed) await mails.store(tx, mail);
      const data = { spaceId, balance: toCredits(low.availableMicro) };
      await noteEvent(tx, { id: `credits.low:${spaceId}:${Date.now()}`, type: 'credits.low', spaceId, data });
    });
    logger.info({ spaceId }, 'The space has few credits left.');
  }
}

function noticeOf({ spaceId, name, availableMicro }: LowBalance): { subject: string; text: string } {
  const credits = toCredits(availableMicro).toFixed(2);
  return {
    subject: `Few credits left in ${name}`,
    text:
      `The space ${name} (${spaceId}) has ${credits} credits left.\n\n` +
      `Buy more with POST /api/billing/${spaceId}/top-up, or turn on automatic top-ups: PUT /api/billing/${spaceId}/auto-top-up.\n`,
  };
}
