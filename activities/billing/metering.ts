import type { Transaction } from 'sequelize';
import type { Config } from '../../config/index.ts';
import type { Catalogue } from '../../integrations/chat/catalogue.ts';
import { estimateTokens } from '../../integrations/chat/tokens.ts';
import { type CallKind, noteOutput } from '../../models/billing/callSizes.ts';
import { type CallRequest, holdForCall } from '../../models/billing/gate.ts';
import { findHold, release, settle } from '../../models/billing/holds.ts';
import { costOf, isFree, type Prices, pricesOf } from '../../models/billing/prices.ts';
import { openHoldsOf } from '../../models/billing/staleCredits.ts';
import { isAside } from '../../models/chat/modelCall.ts';
import { saidSinceStep } from '../../models/chat/turnLog/tails.ts';
import { type Database, transaction } from '../../models/database/database.ts';
import type { MeteredCall, Metering, Reservation } from '../chat/deps.ts';
import { GrowingHold } from './growingHold.ts';

/** Metering by the ledger: holds a call's cost by the catalogue's rates before the call, and books it afterwards. */
export function createMetering(options: {
  database: Database;
  config: Pick<Config, 'billing'>;
  catalogue: Catalogue;
}): Metering {
  const { database, config, catalogue } = options;
  const { enforced } = config.billing;
  const pricesFor = (modelId: string) => pricesOf(catalogue.find(modelId)?.pricingRates ?? []);

  return {
    async reserve({ turn, step, modelId }, { maxOutputTokens, ...size }) {
      const model = catalogue.find(modelId);
      if (model === undefined || isFree(pricesFor(modelId))) return {};
      const longest = model.capabilities.maxOutputTokens;
      const call: CallRequest = {
        id: holdId({ turn, step }),
        spaceId: turn.spaceId,
        userId: turn.userId,
        turnId: turn.id,
        modelId,
        kind: kindOf({ turn, step }),
        prices: pricesFor(modelId),
        maxOutputTokens: Math.min(longest, maxOutputTokens ?? longest),
        ...size,
        enforced,
      };
      const allowance = await holdForCall(database, call);
      if (allowance === undefined) return {};
      const hold = new GrowingHold(database, call, allowance);
      const said: Reservation['said'] = (part) => hold.said(part);
      if (allowance.maxOutputTokens === undefined) return { said };
      const endedBy = allowance.boundBy === 'cap' ? 'SPENDING_CAP_REACHED' : 'CREDITS_EXHAUSTED';
      return { maxOutputTokens: allowance.maxOutputTokens, endedBy, said };
    },

    async settle(tx, call, usage) {
      const { turn, step, modelId } = call;
      const prices = pricesFor(modelId);
      const id = holdId({ turn, step });
      // A free model may have replaced one that costs. Its hold must be released then.
      if (isFree(prices) && (!enforced || (await findHold(tx, id)) === undefined)) return;
      const cost = usage === undefined ? await costOfStopped(tx, call, prices) : costOf(prices, usage);
      const { spaceId, userId } = turn;
      await settle(tx, { id, spaceId, userId, turnId: turn.id, modelId, cost, enforced });
      if (usage === undefined || isFree(prices)) return;
      // The cost of a stopped answer does not predict the next.
      const output = costOf(prices, { ...usage, inputTokens: 0, cachedInputTokens: 0 }) - Math.ceil(prices.perCall);
      await noteOutput(tx, { spaceId, modelId, kind: kindOf({ turn, step }) }, Math.max(0, output));
    },

    async release(turnId) {
      for (const { id, spaceId } of await openHoldsOf(database, turnId)) {
        await transaction(database, (tx) => release(tx, spaceId, id));
      }
    },
  };
}

function kindOf({ turn, step }: Pick<MeteredCall, 'turn' | 'step'>): CallKind['kind'] {
  return isAside(step) ? 'aside' : turn.mode;
}

function holdId({ turn, step }: Pick<MeteredCall, 'turn' | 'step'>): string {
  return `${turn.id}:${step}`;
}

/**
 * Estimates the cost of a stopped call, for which the provider sends no count: the prompt and the output so far. A call
 * without output is free. An estimate makes no debt, so the cost is at most what is held for the call.
 */
async function costOfStopped(tx: Transaction, { turn, step }: MeteredCall, prices: Prices): Promise<number> {
  let characters = 0;
  for (const chunk of await saidSinceStep(tx, turn.id, step)) {
    if (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta') characters += chunk.delta.length;
    else if (chunk.type === 'tool-input-delta') characters += chunk.inputTextDelta.length;
  }
  if (characters === 0) return 0;
  const hold = await findHold(tx, holdId({ turn, step }));
  const outputTokens = estimateTokens(characters);
  const used = { inputTokens: hold?.inputTokens ?? 0, cachedInputTokens: 0, outputTokens, reasoningTokens: 0 };
  return Math.min(costOf(prices, used), hold?.status === 'open' ? hold.amount : Number.POSITIVE_INFINITY);
}
