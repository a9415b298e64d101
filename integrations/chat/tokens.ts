import type { LanguageModelV4Prompt, LanguageModelV4Usage } from '@ai-sdk/provider';
import type { TokenUsage } from './modelCall.ts';

/** The rule of thumb that providers themselves give for English; used only where no provider counted. */
const charactersPerToken = 4;
/** The approximate cost of a picture or a page; the length of its base64 says nothing about that. */
const tokensPerFile = 1_000;

/** A rough count. It is never billed if the provider reported its own. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}

/** A rough count of a prompt's tokens, for `autoModel`'s rules and for calls whose provider did not count. */
export function estimatePromptTokens(prompt: LanguageModelV4Prompt): number {
  let characters = 0;
  let files = 0;
  for (const message of prompt) {
    if (message.role === 'system') {
      characters += message.content.length;
      continue;
    }
    for (const part of message.content) {
      if (part.type === 'text' || part.type === 'reasoning') characters += part.text.length;
      else if (part.type === 'file') files += 1;
      else if (part.type === 'tool-call') characters += JSON.stringify(part.input ?? null).length;
      else if (part.type === 'tool-result' && part.output.type === 'content') {
        for (const piece of part.output.value) {
          if (piece.type === 'text') characters += piece.text.length;
          else files += 1;
        }
      } else if (part.type === 'tool-result') characters += JSON.stringify(part.output).length;
    }
  }
  return estimateTokens(characters) + files * tokensPerFile;
}

/**
 * The estimated usage of a call whose provider reported none: it was stopped or cut off, or the server never counts.
 */
export function estimateUsage(prompt: LanguageModelV4Prompt, outputCharacters: number): TokenUsage {
  return {
    inputTokens: estimatePromptTokens(prompt),
    cachedInputTokens: 0,
    outputTokens: estimateTokens(outputCharacters),
    reasoningTokens: 0,
  };
}

/** The provider's own count, or undefined when it gave none. */
export function reportedUsage(usage: LanguageModelV4Usage): TokenUsage | undefined {
  if (usage.inputTokens.total === undefined && usage.outputTokens.total === undefined) return undefined;
  return {
    inputTokens: usage.inputTokens.total ?? 0,
    cachedInputTokens: usage.inputTokens.cacheRead ?? 0,
    outputTokens: usage.outputTokens.total ?? 0,
    reasoningTokens: usage.outputTokens.reasoning ?? 0,
  };
}
