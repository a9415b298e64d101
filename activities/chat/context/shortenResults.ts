import type { LanguageModelV4Message } from '@ai-sdk/provider';
import { firstOf } from '../../../base/text.ts';
import { charactersFor, tokensOf, tokensOfText } from './budget.ts';

type ToolMessage = Extract<LanguageModelV4Message, { role: 'tool' }>;

/** The part of a result that is always kept, since its beginning mostly tells what the result was. */
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
      if (part.type !== 'tool-result') return part;
      const { output } = part;
      if (output.type === 'text') return { ...part, output: { ...output, value: take(output.value) } };
      if (output.type !== 'content') return part;
      const value = output.value.map((piece) => (piece.type === 'text' ? { ...piece, text: take(piece.text) } : piece));
      return { ...part, output: { ...output, value } };
    });
    return { ...message, content } satisfies ToolMessage;
  });

  function take(text: string): string {
    if (excess <= 0) return text;
    const kept = shorten(text, excess);
    excess -= tokensOfText(text) - tokensOfText(kept);
    return kept;
  }
}

function shorten(text: string, excessTokens: number): string {
  const keep = charactersFor(Math.max(keptTokens, tokensOfText(text) - excessTokens), text);
  if (keep >= text.length) return text;
  const kept = firstOf(text, keep);
  return `${kept}\n[… cut here to fit: ${text.length - kept.length} more characters are not shown]`;
}
