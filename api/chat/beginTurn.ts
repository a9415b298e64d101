import type { Config } from '../../config/index.ts';
import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import { estimateTokens } from '../../integrations/chat/tokens.ts';
import { holdForTurn } from '../../models/billing/gate.ts';
import { isFree, pricesOf } from '../../models/billing/prices.ts';
import {
  type AcceptedMessage,
  type Admit,
  acceptMessage,
  outboxItemReused,
  type SendIntent,
} from '../../models/chat/acceptMessage.ts';
import type { ChatSettings } from '../../models/chat/settings.ts';
import type { Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { authorizeTurn } from './authorizeThread.ts';

/**
 * Accepts a message and starts its turn, or finds the turn that the same message started before. Throws 422
 * `OUTBOX_ITEM_REUSED`, and 402, 404 or 409 if the message is refused.
 */
export async function beginTurn(
  deps: RouteDeps,
  caller: Caller,
  intent: SendIntent,
  settings: ChatSettings,
): Promise<AcceptedMessage> {
  const { launcher, logger } = deps;
  const accepted = await acceptMessage(deps.database, intent, creditGate(deps, intent));
  const { turn, created, differs, interrupted } = accepted;
  // An outbox item finds its turn anywhere, even in a space that the sender has left or in a deleted thread.
  if (!created) await authorizeTurn(deps, caller, turn.id);
  if (differs) throw outboxItemReused();
  // The message is stored: if the start fails now, the turn is late but not lost, since the sweeper repeats it.
  if (created) {
    deps.meters.turnBegun(turn.modelId);
    logger.info({ turnId: turn.id, threadId: turn.threadId, modelId: turn.modelId }, 'A turn has begun.');
  }
  if (created && turn.status === 'running') void launcher.startNewTurn(turn, settings);
  if (interrupted !== undefined) void launcher.stopTurn(interrupted);
  return accepted;
}

/**
 * Reserves credits for a message's first model call in the transaction that accepts the message. So the answer is 402
 * before any byte of the stream, and many messages at once are accepted only as far as the credits go. A repeated
 * message has its turn already and costs nothing more. Undefined for a free model.
 */
function creditGate(
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
      messageTokens: estimateTokens(JSON.stringify(intent.parts, withoutBytes).length),
      enforced: config.billing.enforced,
    });
}

/** The bytes of a file are not read as text. */
function withoutBytes(key: string, value: unknown): unknown {
  return key === 'url' && typeof value === 'string' && value.startsWith('data:') ? '' : value;
}
