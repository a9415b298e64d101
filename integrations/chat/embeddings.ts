import { APICallError } from '@ai-sdk/provider';
import type { Config } from '../../config/index.ts';
import type { EmbeddingModel } from './catalogue.ts';
import { ProviderError } from './errors.ts';
import { createHttpFetch } from './httpFetch.ts';
import { toProviderError } from './normaliseError.ts';
import { openaiBaseUrl } from './providers.ts';

/** Texts, or token ids as OpenAI's clients may send them: one, or many. */
export type EmbeddingInput = string | string[] | number[] | number[][];

export interface EmbeddingCall {
  model: EmbeddingModel;
  input: EmbeddingInput;
  /** The length of the vectors, for models that can shorten them. */
  dimensions?: number | undefined;
  signal: AbortSignal;
}

export interface Embedded {
  /** In the order of the inputs. */
  vectors: number[][];
  /** The provider's count; undefined if it reports none. */
  inputTokens: number | undefined;
}

export interface Embedder {
  /** Throws {@link ProviderError}, or the signal's reason when aborted. */
  embed(call: EmbeddingCall): Promise<Embedded>;
}

/** Calls the embeddings of OpenAI's API, which all providers with embeddings have here. It never retries. */
export function createEmbedder(
  { openai, compatible, idleTimeoutMs }: Config['llm'],
  fetch: typeof globalThis.fetch = createHttpFetch(() => undefined),
): Embedder {
  const servers = {
    openai: { baseUrl: openai.baseUrl ?? openaiBaseUrl, apiKey: openai.apiKey },
    compatible: { baseUrl: compatible.baseUrl ?? '', apiKey: compatible.apiKey },
  };
  return {
    async embed({ model, input, dimensions, signal }) {
      const { baseUrl, apiKey } = model.adapter === 'openai' ? servers.openai : servers.compatible;
      const url = `${baseUrl.replace(/\/$/, '')}/embeddings`;
      const body = { model: model.providerModelId, input, encoding_format: 'float', dimensions };
      const stalled = AbortSignal.timeout(idleTimeoutMs);
      let answered = false;
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(apiKey && { authorization: `Bearer ${apiKey}` }) },
          body: JSON.stringify(body),
          signal: AbortSignal.any([signal, stalled]),
        });
        answered = true;
        const text = await response.text();
        if (!response.ok) throw refusal(url, response, text);
        return read(text, Array.isArray(input) && typeof input[0] !== 'number' ? input.length : 1);
      } catch (error) {
        signal.throwIfAborted();
        if (stalled.aborted) throw new ProviderError('PROVIDER_STALLED');
        throw toProviderError(error, answered);
      }
    },
  };
}

function refusal(url: string, { status, headers }: Response, responseBody: string): APICallError {
  const responseHeaders = Object.fromEntries(headers);
  return new APICallError({
    message: `Status ${status}`,
    url,
    requestBodyValues: {},
    statusCode: status,
    responseHeaders,
    responseBody,
  });
}

interface Answer {
  data?: { index?: number; embedding?: unknown }[];
  usage?: { prompt_tokens?: unknown };
}

function read(text: string, count: number): Embedded {
  const { data, usage } = parse(text);
  const sorted = (Array.isArray(data) ? data : []).toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0));
  const vectors = sorted.map(({ embedding }) => embedding);
  if (vectors.length !== count || !vectors.every(isVector)) throw new ProviderError('PROVIDER_BAD_RESPONSE');
  const tokens = usage?.prompt_tokens;
  return { vectors, inputTokens: typeof tokens === 'number' && tokens >= 0 ? Math.floor(tokens) : undefined };
}

function parse(text: string): Answer {
  try {
    return (JSON.parse(text) as Answer | null) ?? {};
  } catch (error) {
    throw new ProviderError('PROVIDER_BAD_RESPONSE', { cause: error });
  }
}

function isVector(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'number');
}
