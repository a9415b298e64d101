import type { Config } from '../../config/index.ts';
import type { Catalogue } from '../../integrations/llm/catalogue.ts';
import { estimateTokens } from '../../integrations/llm/tokens.ts';
import { dropHold, holdForCall, moveHold } from '../../models/billing/gate.ts';
import { isFree, pricesOf } from '../../models/billing/prices.ts';
import type { AcceptedMessage, SendIntent } from '../../models/chat/acceptMessage.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Database } from '../../models/database.ts';
import { newId } from '../../models/ids.ts';

/**
 * Sets credits aside for a message's first model call before the message is accepted: who has none hears 402 before any byte of the stream, and of many
 * messages at once only as many are accepted as there are credits for. The turn takes over what was set aside.
 */
export async function acceptWithCredits(
  deps: { database: Database; config: Pick<Config, 'billing'>; catalogue: Catalogue },
  intent: SendIntent,
  accept: () => Promise<AcceptedMessage>,
): Promise<AcceptedMessage> {
  const { database, config, catalogue } = deps;
  const model = catalogue.find(intent.modelId);
  const prices = pricesOf(model?.pricingRates ?? []);
  if (model === undefined || isFree(prices) || (await isRepeat(database, intent))) return accept();

  const id = newId('hold');
  await holdForCall(database, {
    id,
    spaceId: intent.spaceId,
    userId: intent.userId,
    turnId: null,
    modelId: model.id,
    prices,
    modelMaxOutputTokens: model.capabilities.maxOutputTokens,
    inputTokens: estimateTokens(JSON.stringify(intent.parts).length),
    enforced: config.billing.enforced,
  });
  let accepted: AcceptedMessage;
  try {
    accepted = await accept();
  } catch (error) {
    await dropHold(database, intent.spaceId, id);
    throw error;
  }
  if (accepted.created) await moveHold(database, id, accepted.turn.id);
  else await dropHold(database, intent.spaceId, id);
  return accepted;
}

/** A message that was accepted before has its turn, and costs nothing more. */
async function isRepeat(database: Database, { userId, outboxItemId }: SendIntent): Promise<boolean> {
  return outboxItemId !== undefined && (await chatModels(database).Turn.byOutboxItem(userId, outboxItemId)) !== null;
}
