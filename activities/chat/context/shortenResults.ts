import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { firstOf } from '../../../models/text.ts';
import { charactersFor, tokensOf, tokensOfText } from './budget.ts';

type ToolMessage = Extract<LanguageModelV4Message, { role: 'tool' }>;

/** What is always left of a result: its beginning mostly says what it was. */
const keptTokens = 200;

/**
 * Makes a turn's steps so far fit: tool results are cut, the oldest first, each with a mark that says how much is
 * missing. The results themselves stay in the turn's log and message.
 */
export function shortenResults(messages: LanguageModelV4Message[], budgetTokens: number): LanguageModelV4Message[] {
  let excess = tokensOf(messages) - budgetTokens;
  if (excess <= 0) return messages;
  return messages.map((message) => {
    if (message.role !== 'tool' || excess <= 0) return message;
    const content = message.content.map((part) => {
      if (part.type !== 'tool-result' || part.output.type !== 'text' || excess <= 0) return part;
      const value = shorten(part.output.value, excess);
      excess -= tokensOfText(part.output.value) - tokensOfText(value);
      return { ...part, output: { ...part.output, value } };
    });
    return { ...message, content } satisfies ToolMessage;
  });
}

function shorten(text: string, excessTokens: number): string {
  const keep = charactersFor(Math.max(keptTokens, tokensOfText(text) - excessTokens), text);
  if (keep >= text.length) return text;
  const kept = firstOf(text, keep);
  return `${kept}\n[… cut here to fit: ${text.length - kept.length} more characters are not shown]`;
}
