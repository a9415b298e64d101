import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { Transaction } from 'sequelize';
import type { CatalogueModel } from '../../integrations/chat/catalogue.ts';
import { estimatePromptTokens } from '../../integrations/chat/tokens.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Turn } from '../../models/chat/turn.ts';
import { transaction } from '../../models/database/database.ts';
import type { ChatDeps } from './deps.ts';

export interface AsideCall {
  turn: Turn;
  /** A number that no step of the turn uses (modelCall.ts). */
  step: number;
  model: CatalogueModel;
  prompt: LanguageModelV4Prompt;
  maxOutputTokens: number;
  abortSignal: AbortSignal;
}

/** The `firstSeq` of a call that does not appear in its turn's log. */
const noSeq = 4_294_967_295;

/**
 * A model call on the turn's behalf whose answer is not streamed. It is metered like a step, and once, since its result
 * is stored in the commit that settles it. A call that is recorded as answered is not repeated.
 */
export async function askAside(
  deps: ChatDeps,
  call: AsideCall,
  store: (tx: Transaction, text: string) => Promise<void>,
): Promise<void> {
  const { turn, step, model, prompt, abortSignal } = call;
  const key = { turnId: turn.id, step };
  const { ModelCall } = chatModels(deps.database);
  if ((await ModelCall.findOne({ where: key }))?.status === 'completed') return;
  const metered = { turn, step, modelId: model.id };
  const inputTokens = estimatePromptTokens(prompt);
  const reservation = await deps.metering.reserve(metered, { inputTokens, maxOutputTokens: call.maxOutputTokens });
  const { maxOutputTokens = call.maxOutputTokens } = reservation;
  await transaction(deps.database, (tx) => ModelCall.begin(tx, { ...key, modelId: model.id, firstSeq: noSeq }));
  let text = '';
  const { finishReason, usage } = await deps.modelRunner.run(
    {
      modelId: model.id,
      prompt,
      // The lowest effort: more reasoning is not worth its cost here.
      effort: model.effortOptions[0],
      maxOutputTokens: Math.min(maxOutputTokens, call.maxOutputTokens),
      abortSignal,
    },
    (part) => {
      if (part.type === 'text-delta') text += part.delta;
      return reservation.said?.(part);
    },
  );
  const redactor = await deps.secrets.redactors.forSpace(turn.spaceId);
  await transaction(deps.database, async (tx) => {
    await store(tx, redactor.text(text).toWellFormed().trim());
    await ModelCall.update(
      { status: 'completed', finishReason, endedAt: new Date(), ...usage },
      { where: key, transaction: tx },
    );
    await deps.metering.settle(tx, metered, usage);
  });
}
