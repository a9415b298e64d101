import type { Config } from '../../config/index.ts';
import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import { estimateTokens } from '../../integrations/chat/tokens.ts';
import { holdForTurn } from '../../models/billing/gate.ts';
import { isFree, pricesOf } from '../../models/billing/prices.ts';
import type { Admit, SendIntent } from '../../models/chat/acceptMessage.ts';

/**
 * Sets credits aside for a message's first model call in the transaction that accepts the message: without credits the
 * answer is 402 before any byte of the stream, and of many messages at once only as many are accepted as there are
 * credits for. A message that was accepted before already has its turn, and costs nothing more. Undefined where the
 * model costs nothing.
 */
export function creditGate(
  { config, catalogue }: { config: Pick<Config, 'billing'>; catalogue: Catalogue },
  intent: SendIntent,
): Admit | undefined {
  const model = catalogue.find(intent.modelId);
  const prices = pricesOf(model?.pricingRates ?? []);
  if (model === undefined || isFree(prices)) return undefined;
  const { contextWindowTokens, maxOutputTokens } = model.capabilities;
  return (tx, turn) =>
    holdForTurn(tx, {
      turn,
      spaceId: intent.spaceId,
      userId: intent.userId,
      modelId: model.id,
      kind: intent.mode,
      prices,
      maxOutputTokens,
      contextWindowTokens,
      messageTokens: estimateTokens(JSON.stringify(intent.parts).length),
      enforced: config.billing.enforced,
    });
}
