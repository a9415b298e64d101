import type { LanguageModelV4Message, LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { CatalogueModel } from '../../../integrations/chat/catalogue.ts';

/** Counting bytes works about equally for every script: a token is about four bytes of UTF-8. */
const bytesPerToken = 4;
/** The share of a budget that is used, since estimates can be too low. */
const usableShare = 0.9;
const maxAnswerTokens = 16_384;
/** How much smaller a prompt becomes each time the provider says that it is too long after all. */
const squeezeShare = 0.7;

export const tokensPerImage = 1_500;
const maxTokensPerPdf = 40_000;

export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken);
}

/** How many characters of a text fit a budget of tokens; conservative where the text is not ASCII. */
export function charactersFor(tokens: number, text: string): number {
  const share = text === '' ? 1 : text.length / Buffer.byteLength(text);
  return Math.floor(tokens * bytesPerToken * share);
}

/** The most tokens of a prompt: the model's window without the tools and the answer, within the space's limit. */
export function promptBudget(
  model: Pick<CatalogueModel, 'capabilities'>,
  limits: { maxContextTokens: number | null; squeeze: number; toolTokens: number },
): number {
  const { maxContextTokens, squeeze, toolTokens } = limits;
  const { contextWindowTokens, maxOutputTokens } = model.capabilities;
  const answer = Math.min(maxOutputTokens, maxAnswerTokens, contextWindowTokens / 4);
  const usable = Math.max(contextWindowTokens - answer - toolTokens, contextWindowTokens / 4) * usableShare;
  return Math.floor(Math.min(usable, maxContextTokens ?? usable) * squeezeShare ** squeeze);
}

/** Roughly how many tokens the messages have. */
export function tokensOf(messages: readonly LanguageModelV4Message[]): number {
  let tokens = 0;
  for (const message of messages) {
    if (message.role === 'system') tokens += tokensOfText(message.content);
    else for (const part of message.content) tokens += tokensOfPart(part);
  }
  return tokens;
}

function tokensOfPart(part: Exclude<LanguageModelV4Message, { role: 'system' }>['content'][number]): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return tokensOfText(part.text);
    case 'file':
      return part.mediaType === 'application/pdf' ? tokensOfPdf(part.data) : tokensPerImage;
    case 'tool-call':
      return tokensOfText(JSON.stringify(part.input ?? null));
    case 'tool-result':
      return tokensOfOutput(part.output);
    default:
      return 0;
  }
}

function tokensOfOutput(output: LanguageModelV4ToolResultPart['output']): number {
  if (output.type !== 'content') return tokensOfText(JSON.stringify(output));
  return output.value.reduce((sum, part) => sum + (part.type === 'text' ? tokensOfText(part.text) : tokensPerImage), 0);
}

/**
 * Estimated from its bytes, since its pages are not known: 100 KB of PDF are a few pages of text, and 10 MB mostly
 * pictures.
 */
function tokensOfPdf(data: { type: string; data?: unknown }): number {
  const bytes = typeof data.data === 'string' ? data.data.length * 0.75 : 0;
  return Math.min(1_000 + bytes / 50, maxTokensPerPdf);
}
