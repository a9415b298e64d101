import { newId } from '../../base/ids.ts';
import type { EmbeddingModel } from '../../integrations/chat/catalogue.ts';
import type { EmbeddingInput } from '../../integrations/chat/embeddings.ts';
import { ProviderError } from '../../integrations/chat/errors.ts';
import { estimateTokens } from '../../integrations/chat/tokens.ts';
import { holdForCall } from '../../models/billing/gate.ts';
import { release, settle } from '../../models/billing/holds.ts';
import { costOf, isFree, pricesOf } from '../../models/billing/prices.ts';
import { transaction } from '../../models/database/database.ts';
import { defaultSpaceOf } from '../chat/authorizeThread.ts';
import { answer } from '../frame/answer.ts';
import { authorizeSpace } from '../frame/auth/authorizeSpace.ts';
import { callerOf } from '../frame/auth/caller.ts';
import type { RouteDeps } from '../frame/deps.ts';
import { goneOf } from '../frame/goneOf.ts';
import { releaseBody } from '../frame/middleware/body.ts';
import { bodyOf } from '../frame/request.ts';
import { createRouter } from '../frame/router.ts';
import { turnFailure } from './presentError.ts';
import { modelUnknown } from './refusals.ts';

/** `POST /v1/embeddings`: passes texts to a provider that has embeddings, and books them like a model call. */
export function embeddingRoutes(deps: RouteDeps) {
  const { catalogue, config, database, embedder } = deps;
  const { enforced } = config.billing;
  const router = createRouter();

  router.post('/v1/embeddings', async (req, res) => {
    const caller = callerOf(req);
    const { model: modelId, input, encoding_format: format, dimensions } = bodyOf<'createEmbeddings'>(req);
    const model = catalogue.embeddings.find(({ id }) => id === modelId);
    if (model === undefined) throw modelUnknown();
    const spaceId = req.get('x-space-id') ?? (await defaultSpaceOf(deps, caller));
    await authorizeSpace(deps, caller, spaceId, 'viewer');
    releaseBody(req);
    const call = { spaceId, userId: caller.userId, model, input };
    const { vectors, inputTokens } = await metered(call, () =>
      embedder.embed({ model, input, dimensions: dimensions ?? undefined, signal: goneOf(res) }),
    );
    answer<'createEmbeddings'>(res, 200, {
      object: 'list',
      data: vectors.map((vector, index) => ({
        object: 'embedding',
        index,
        embedding: format === 'base64' ? inBase64(vector) : vector,
      })),
      model: modelId,
      usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
    });
  });

  /** Holds what the call is expected to cost, and books what it did. A call that failed, or was cut off, is free. */
  async function metered<Result extends { inputTokens: number | undefined }>(
    {
      spaceId,
      userId,
      model,
      input,
    }: { spaceId: string; userId: string; model: EmbeddingModel; input: EmbeddingInput },
    call: () => Promise<Result>,
  ): Promise<Result & { inputTokens: number }> {
    const prices = pricesOf(model.pricingRates);
    const expected = tokensIn(input);
    const id = `${newId('embedding')}:0`;
    const known = { id, spaceId, userId, turnId: null, modelId: model.id, enforced };
    const isMetered = !isFree(prices);
    if (isMetered) {
      await holdForCall(database, { ...known, kind: 'aside', prices, inputTokens: expected, maxOutputTokens: 0 });
    }
    try {
      const result = await call();
      const inputTokens = result.inputTokens ?? expected;
      const used = { inputTokens, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };
      if (isMetered) await transaction(database, (tx) => settle(tx, { ...known, cost: costOf(prices, used) }));
      return { ...result, inputTokens };
    } catch (error) {
      if (isMetered) await transaction(database, (tx) => release(tx, spaceId, id));
      throw error instanceof ProviderError ? turnFailure({ code: error.code, detail: error.message }) : error;
    }
  }

  return router;
}

/** A rough count, for a provider that reports none. Token ids are their own count. */
function tokensIn(input: EmbeddingInput): number {
  if (typeof input === 'string') return estimateTokens(input.length);
  return input.reduce<number>((sum, one) => sum + (typeof one === 'number' ? 1 : tokensIn(one)), 0);
}

function inBase64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64');
}
