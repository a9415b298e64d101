import type { DomainError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { Places } from '../../base/places.ts';
import type { EmbeddingModel } from '../../integrations/chat/catalogue.ts';
import { type EmbeddingInput, inputsOf } from '../../integrations/chat/embeddings.ts';
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
import { embeddingModelUnknown } from './refusals.ts';

/** Calls of one user that run at once, those whose client has left included. The others wait. */
const callsAtOnce = { all: Number.POSITIVE_INFINITY, perOwner: 16 };
/** Models make fewer tokens of almost every text. */
const bytesPerToken = 2;
/** For each text, for those that a model adds by itself. */
const addedTokens = 8;

/** `POST /v1/embeddings`: passes texts to a provider that has embeddings, and books them like a model call. */
export function embeddingRoutes(deps: RouteDeps) {
  const { catalogue, config, database, embedder } = deps;
  const { enforced } = config.billing;
  const router = createRouter();
  const places = new Places(callsAtOnce);

  router.post('/v1/embeddings', async (req, res) => {
    const caller = callerOf(req);
    const { model: modelId, input, encoding_format: format, dimensions } = bodyOf<'createEmbeddings'>(req);
    const model = catalogue.embeddings.find(({ id }) => id === modelId);
    if (model === undefined) throw embeddingModelUnknown(catalogue, modelId);
    const spaceId = req.get('x-space-id') ?? (await defaultSpaceOf(deps, caller));
    await authorizeSpace(deps, caller, spaceId, 'viewer');
    releaseBody(req);
    const call = { spaceId, userId: caller.userId, model, input };
    using _place = await places.take({ owner: caller.userId, signal: goneOf(res) });
    // The provider gets the texts at once and counts them, so the call goes on and is booked if the client leaves.
    const { vectors, inputTokens } = await metered(call, () =>
      embedder.embed({ model, input, dimensions: dimensions ?? undefined }),
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

  /** Holds the most that the call is billed, and books what it used of that. A call that failed is free. */
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
    const most = mostBilledTokens(input);
    const id = `${newId('embedding')}:0`;
    const known = { id, spaceId, userId, turnId: null, modelId: model.id, enforced };
    const isMetered = !isFree(prices);
    if (isMetered) {
      await holdForCall(database, { ...known, kind: 'aside', prices, inputTokens: most, maxOutputTokens: 0 });
    }
    try {
      const result = await call();
      const inputTokens = Math.min(result.inputTokens ?? estimateAll(input), most);
      const used = { inputTokens, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 };
      if (isMetered) await transaction(database, (tx) => settle(tx, { ...known, cost: costOf(prices, used) }));
      return { ...result, inputTokens };
    } catch (error) {
      if (isMetered) await transaction(database, (tx) => release(tx, spaceId, id));
      throw error instanceof ProviderError ? failureOf(error) : error;
    }
  }

  return router;
}

/** The tokens that are held, and billed at most, whatever the provider counts: a space never owes for embeddings. */
function mostBilledTokens(input: EmbeddingInput): number {
  return sumOf(input, (text) => Math.ceil(Buffer.byteLength(text) / bytesPerToken) + addedTokens);
}

/** No turn has begun, so a client may repeat the call, at the time that the provider says. */
function failureOf({ code, message, retryAfterMs }: ProviderError): DomainError {
  const retry = retryAfterMs === undefined ? {} : { retryAfterSeconds: Math.ceil(retryAfterMs / 1_000) };
  return turnFailure({ code, detail: message }, retry);
}

/** A rough count, for a provider that reports none. Token ids are their own count. */
function estimateAll(input: EmbeddingInput): number {
  return sumOf(input, (text) => estimateTokens(text.length));
}

function sumOf(input: EmbeddingInput, ofText: (text: string) => number): number {
  return inputsOf(input).reduce((sum, one) => sum + (typeof one === 'string' ? ofText(one) : one.length), 0);
}

function inBase64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64');
}
