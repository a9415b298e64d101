import { APICallError } from '@ai-sdk/provider';
import type { Config } from '../../config/index.ts';
import type { EmbeddingModel } from './catalogue.ts';
import { embedByDemo } from './demoEmbedding.ts';
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
}

export interface Embedded {
  /** In the order of the inputs. */
  vectors: number[][];
  /** The provider's count; undefined if it reports none. */
  inputTokens: number | undefined;
}

export interface Embedder {
  /** Throws {@link ProviderError}. */
  embed(call: EmbeddingCall): Promise<Embedded>;
}

/** Calls the embeddings of OpenAI's API, which all providers with embeddings have here, or the demo. It never retries. */
export function createEmbedder(
  { openai, compatible, idleTimeoutMs }: Config['llm'],
  fetch: typeof globalThis.fetch = createHttpFetch(() => undefined),
): Embedder {
  const servers = {
    openai: { baseUrl: openai.baseUrl ?? openaiBaseUrl, apiKey: openai.apiKey },
    compatible: { baseUrl: compatible.baseUrl ?? '', apiKey: compatible.apiKey },
  };
  return {
    async embed({ model, input, dimensions }) {
      if (model.adapter === 'demo') return embedByDemo(inputsOf(input), dimensions);
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
          signal: stalled,
        });
        answered = true;
        const text = await response.text();
        if (!response.ok) throw refusal(url, response, text);
        return read(text, input);
      } catch (error) {
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
  data?: ({ index?: unknown; embedding?: unknown } | null)[];
  usage?: { prompt_tokens?: unknown } | null;
}

/** The answer, checked: an implausible one counts as a failed call, before anything is booked or passed on. */
function read(text: string, input: EmbeddingInput): Embedded {
  const inputs = inputsOf(input);
  const { data, usage } = parse(text);
  const vectors = Array.isArray(data) ? inOrder(data).map((one) => one?.embedding) : [];
  if (vectors.length !== inputs.length || !areVectors(vectors)) throw new ProviderError('PROVIDER_BAD_RESPONSE');
  const tokens = usage?.prompt_tokens;
  if (typeof tokens !== 'number') return { vectors, inputTokens: undefined };
  const isPlausible = Number.isSafeInteger(tokens) && tokens >= 0 && tokens <= mostTokens(inputs);
  if (!isPlausible) throw new ProviderError('PROVIDER_BAD_RESPONSE');
  return { vectors, inputTokens: tokens };
}

/** Each text, or its token ids. */
export function inputsOf(input: EmbeddingInput): (string | number[])[] {
  return typeof input === 'string' || typeof input[0] === 'number'
    ? [input as string | number[]]
    : (input as string[] | number[][]);
}

/** Tokens that a model adds to each text, such as its first and its last, and a prefix that its server writes. */
const addedTokens = 64;

/** No tokenizer makes more tokens than the text has bytes. */
function mostTokens(inputs: readonly (string | number[])[]): number {
  const sizes = inputs.map((one) => (typeof one === 'string' ? Buffer.byteLength(one) : one.length));
  return sizes.reduce((sum, size) => sum + size + addedTokens, 0);
}

/** By their indexes; as they come if none has one. */
function inOrder(data: NonNullable<Answer['data']>): NonNullable<Answer['data']> {
  if (data.every((one) => one?.index === undefined)) return data;
  const sorted = data.toSorted((a, b) => Number(a?.index) - Number(b?.index));
  return sorted.every((one, index) => one?.index === index) ? sorted : [];
}

function parse(text: string): Answer {
  try {
    return (JSON.parse(text) as Answer | null) ?? {};
  } catch (error) {
    throw new ProviderError('PROVIDER_BAD_RESPONSE', { cause: error });
  }
}

/** As the contract has it. */
const mostDimensions = 100_000;

/** Vectors of one length, of numbers that fit 32-bit floats. */
function areVectors(values: readonly unknown[]): values is number[][] {
  const first = values[0];
  const length = Array.isArray(first) ? first.length : 0;
  if (length < 1 || length > mostDimensions) return false;
  return values.every(
    (value) =>
      Array.isArray(value) &&
      value.length === length &&
      value.every((one) => typeof one === 'number' && Number.isFinite(Math.fround(one))),
  );
}
