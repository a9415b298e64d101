import type { Turn } from '../../models/chat/turn.ts';
import type { Usage } from '../../models/chat/turnLog/chunks.ts';
import type { AnswerOf } from '../frame/answer.ts';
import type { CompletionFinish, MadeCall } from './answerState.ts';

export type Completion = AnswerOf<'createChatCompletion'>;
export type ToolCallBody = NonNullable<Completion['choices'][number]['message']['tool_calls']>[number];

export interface WholeAnswer {
  text: string;
  reasoning: string;
  calls: MadeCall[];
  finish: CompletionFinish;
}

export function presentCompletion(
  turn: Turn,
  { text, reasoning, calls, finish }: WholeAnswer,
  usage: Usage,
): Completion {
  return {
    ...head(turn),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && calls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning !== '' && { reasoning_content: reasoning }),
          ...(calls.length > 0 && { tool_calls: calls.map(presentCall) }),
        },
        logprobs: null,
        finish_reason: finish,
      },
    ],
    usage: presentUsage(usage),
  };
}

export interface Delta {
  role?: 'assistant';
  content?: string;
  reasoning_content?: string;
  tool_calls?: (ToolCallBody & { index: number })[];
}

/** A chunk of a stream. With `withUsage` the client expects a usage field, which only the last chunk fills. */
export function presentChunk(turn: Turn, delta: Delta, finish: CompletionFinish | null, withUsage: boolean) {
  return {
    ...head(turn),
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(withUsage && { usage: null }),
  };
}

export function presentUsageChunk(turn: Turn, usage: Usage) {
  return { ...head(turn), object: 'chat.completion.chunk', choices: [], usage: presentUsage(usage) };
}

export function presentCall({ toolCallId: id, toolName: name, input }: MadeCall): ToolCallBody {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } };
}

function head({ id, createdAt, modelId: model }: Turn) {
  return { id: `chatcmpl-${id}`, created: Math.floor(createdAt.getTime() / 1_000), model };
}

function presentUsage(usage: Usage): Completion['usage'] {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  };
}
