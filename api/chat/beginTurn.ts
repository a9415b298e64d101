import {
  type AcceptedMessage,
  acceptMessage,
  outboxItemReused,
  type SendIntent,
} from '../../models/chat/acceptMessage.ts';
import type { ChatSettings } from '../../models/chat/settings.ts';
import type { Caller } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { authorizeTurn } from './authorizeThread.ts';
import { creditGate } from './creditGate.ts';

/**
 * Accepts a message and starts its turn, or finds the turn that it began before. Throws 422 `OUTBOX_ITEM_REUSED`, and
 * whatever refuses a message: 402, 404, 409.
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
  // An outbox item finds its turn wherever that is: even in a space that the sender has left, or in a deleted thread.
  if (!created) await authorizeTurn(deps, caller, turn.id);
  if (differs) throw outboxItemReused();
  // The intent is stored: from here on a failed start is late but not lost, since the sweeper repeats it.
  if (created) {
    deps.meters.turnBegun(turn.modelId);
    logger.info({ turnId: turn.id, threadId: turn.threadId, modelId: turn.modelId }, 'A turn has begun.');
  }
  if (created && turn.status === 'running') void launcher.startNewTurn(turn, settings);
  if (interrupted !== undefined) void launcher.stopTurn(interrupted);
  return accepted;
}
