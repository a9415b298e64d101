import { DomainError } from '../../base/errors.ts';
import { ProviderError } from '../../integrations/chat/errors.ts';
import { needsOf } from '../../models/chat/attachments.ts';
import { chatModels } from '../../models/chat/models.ts';
import type { Turn } from '../../models/chat/turn.ts';
import type { ChatDeps } from './deps.ts';

/** How a model call failed, for the workflow to judge: never any content. */
export interface FailedCall {
  kind: 'failed';
  code: string;
  retryable: boolean;
  retryAfterMs?: number;
  /** The catalogue's next model that can handle the turn, where another model may help. */
  fallbackModelId?: string;
}

/** A provider's failure, or a refusal of ours, as a result. Anything else is thrown, and the activity is retried. */
export async function failedCall(deps: ChatDeps, turn: Turn, modelId: string, error: unknown): Promise<FailedCall> {
  if (error instanceof ProviderError) {
    deps.meters.modelCallEnded(modelId, error.code);
    deps.logger.warn({ err: error.cause, code: error.code, turnId: turn.id, modelId }, error.message);
    const fallbackModelId = error.fallback ? await fallbackOf(deps, turn, modelId) : undefined;
    return {
      kind: 'failed',
      code: error.code,
      retryable: error.retryable,
      ...(error.retryAfterMs !== undefined && { retryAfterMs: error.retryAfterMs }),
      ...(fallbackModelId !== undefined && { fallbackModelId }),
    };
  }
  if (error instanceof DomainError) return { kind: 'failed', code: error.code, retryable: false };
  throw error;
}

async function fallbackOf(deps: ChatDeps, turn: Turn, modelId: string): Promise<string | undefined> {
  const [message, tools] = await Promise.all([
    chatModels(deps.database).Message.find(turn.threadId, turn.userMessageId),
    deps.tools.offered(turn),
  ]);
  // A fallback model is not asked for what the original model could not do.
  const able = deps.catalogue.find(modelId)?.capabilities;
  const { images, pdf } = needsOf(message?.parts ?? []);
  const needs = {
    images: images && able?.images === true,
    pdf: pdf && able?.pdf === true,
    tools: tools.size > 0 && able?.tools === true,
  };
  return deps.catalogue.fallbacksOf(modelId, { effort: turn.effort, needs })[0]?.model.id;
}
