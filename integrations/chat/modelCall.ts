import type {
  JSONSchema7,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4Source,
  LanguageModelV4ToolChoice,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';

/**
 * One call of one model: the input, the parts streamed while it runs, and the result. Prompts and tools are the AI
 * SDK's own types, so a message is stored once in a shape that every provider takes.
 */
export interface ModelCall {
  /** An id of the catalogue. */
  modelId: string;
  prompt: LanguageModelV4Prompt;
  tools?: LanguageModelV4FunctionTool[];
  toolChoice?: LanguageModelV4ToolChoice;
  /**
   * One of the model's `effortOptions`. Any other value means its `defaultEffort`, so that one model can stand in for
   * another.
   */
  effort?: string | null;
  maxOutputTokens?: number;
  settings?: CallSettings;
  /**
   * Aborting closes the provider's connection at once, before the first token too. `run` then throws the signal's
   * reason.
   */
  abortSignal: AbortSignal;
}

/** Settings that a client may ask for. A provider ignores those that it does not know. */
export interface CallSettings {
  temperature?: number;
  topP?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  seed?: number;
  stopSequences?: string[];
  /** Asks for JSON, with this schema if there is one. */
  json?: { schema?: JSONSchema7; name?: string; description?: string };
  /** False for one tool call at a time. */
  parallelToolCalls?: boolean;
}

/** `inputTokens` includes the cached ones, `outputTokens` the reasoning ones. What a provider does not report is 0. */
export interface TokenUsage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

/** `error` is missing on purpose: a failed call throws a ProviderError and is never a result. */
export type ModelFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'other';

export interface ModelCallResult {
  finishReason: ModelFinishReason;
  usage: TokenUsage;
  /** The catalogue's id of the model that answered. */
  modelId: string;
  /** From the call to the first part with content, in milliseconds. */
  ttftMs: number;
  durationMs: number;
}

/**
 * Data that the provider needs back with this part in the next prompt (Anthropic's reasoning signature, OpenAI's item
 * ids): store it with the part and send it as the prompt part's `providerOptions`.
 */
interface Metadata {
  providerMetadata?: SharedV4ProviderMetadata;
}

/**
 * The parts of an answer, in order. Each `*-delta` and `*-end` carries the id of its `*-start`; ids are unique within
 * one call only. Deltas that arrive together may be joined; the text stays the same.
 */
export type ModelPart =
  | ({ type: 'text-start'; id: string } & Metadata)
  | { type: 'text-delta'; id: string; delta: string }
  | ({ type: 'text-end'; id: string } & Metadata)
  | ({ type: 'reasoning-start'; id: string } & Metadata)
  | { type: 'reasoning-delta'; id: string; delta: string }
  | ({ type: 'reasoning-end'; id: string } & Metadata)
  | { type: 'tool-input-start'; id: string; toolName: string }
  | { type: 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-end'; id: string }
  /** `input` is the model's JSON, unchecked: a model can write JSON that does not parse, and should be told so. */
  | ({ type: 'tool-call'; toolCallId: string; toolName: string; input: string } & Metadata)
  | LanguageModelV4Source
  /** `data` is base64 or, if the provider keeps the file, a URL. */
  | { type: 'file'; mediaType: string; data: { base64: string } | { url: string } };

/**
 * Takes the next part. It is synchronous on the hot path. If it returns a promise, reading from the provider waits for
 * it, so a slow reader slows the provider down and does not fill memory.
 */
export type OnModelPart = (part: ModelPart) => void | Promise<void>;

export interface ModelRunner {
  /**
   * Streams one model call. Throws {@link ProviderError} (errors.ts) for every way a provider can fail, a
   * `DomainError` for a model the catalogue lacks, and the signal's reason when aborted. It never retries:
   * the workflow decides that.
   */
  run(call: ModelCall, onPart: OnModelPart): Promise<ModelCallResult>;
}
