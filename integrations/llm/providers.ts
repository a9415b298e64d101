import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { Config } from '../../config/index.ts';
import type { CatalogueModel } from './catalogue.ts';
import { createDemoModel } from './demo.ts';

/** Set here although the SDKs know them too: without them the SDKs would read the environment themselves. */
const openaiBaseUrl = 'https://api.openai.com/v1';
const anthropicBaseUrl = 'https://api.anthropic.com/v1';

/**
 * The AI SDK's model for an entry of the catalogue, made once for each. OpenAI is spoken to by its Responses API: only
 * there does a reasoning model show its reasoning and keep it over a tool call, and take PDFs. Everything else that
 * calls itself OpenAI-compatible is spoken to by chat completions, which is what such servers offer.
 */
export function createModels(config: Config['llm'], fetch: typeof globalThis.fetch) {
  const made = new Map<string, LanguageModelV4>();
  return (entry: CatalogueModel): LanguageModelV4 => {
    const model = made.get(entry.id) ?? createModel(entry, config, fetch);
    made.set(entry.id, model);
    return model;
  };
}

function createModel(
  { adapter, providerModelId }: CatalogueModel,
  { openai, anthropic, compatible }: Config['llm'],
  fetch: typeof globalThis.fetch,
): LanguageModelV4 {
  switch (adapter) {
    case 'openai':
      return createOpenAI({ apiKey: openai.apiKey ?? '', baseURL: openai.baseUrl ?? openaiBaseUrl, fetch }).responses(
        providerModelId,
      );
    case 'anthropic':
      return createAnthropic({
        apiKey: anthropic.apiKey ?? '',
        baseURL: anthropic.baseUrl ?? anthropicBaseUrl,
        fetch,
      }).languageModel(providerModelId);
    case 'compatible':
      return createOpenAICompatible({
        name: 'compatible',
        apiKey: compatible.apiKey,
        baseURL: compatible.baseUrl ?? '',
        includeUsage: true,
        fetch,
      }).chatModel(providerModelId);
    case 'demo':
      return createDemoModel();
  }
}
