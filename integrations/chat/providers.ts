import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { Config } from '../../config/index.ts';
import { onFirstUse } from '../onFirstUse.ts';
import type { CatalogueModel } from './catalogue.ts';
import { createDemoModel } from './demo.ts';

/** Set explicitly, since the SDKs would otherwise read the environment themselves. */
export const openaiBaseUrl = 'https://api.openai.com/v1';
const anthropicBaseUrl = 'https://api.anthropic.com/v1';

/**
 * The AI SDK's model for a catalogue entry, created once for each. OpenAI is called by its Responses API: only there
 * does a reasoning model show its reasoning, keep it over a tool call, and take PDFs. Other OpenAI-compatible servers
 * are called by chat completions, which is what they offer.
 */
export function createModels(config: Config['llm'], fetch: typeof globalThis.fetch) {
  const { openai, anthropic, compatible } = config;
  const sdks = {
    openai: onFirstUse(() => import('@ai-sdk/openai')),
    anthropic: onFirstUse(() => import('@ai-sdk/anthropic')),
    compatible: onFirstUse(() => import('@ai-sdk/openai-compatible')),
  };
  const made = new Map<string, LanguageModelV4>();
  return async (entry: CatalogueModel): Promise<LanguageModelV4> => {
    const model = made.get(entry.id) ?? (await createModel(entry));
    made.set(entry.id, model);
    return model;
  };

  async function createModel({ adapter, providerModelId }: CatalogueModel): Promise<LanguageModelV4> {
    switch (adapter) {
      case 'openai': {
        const { createOpenAI } = await sdks.openai();
        const baseURL = openai.baseUrl ?? openaiBaseUrl;
        return createOpenAI({ apiKey: openai.apiKey ?? '', baseURL, fetch }).responses(providerModelId);
      }
      case 'anthropic': {
        const { createAnthropic } = await sdks.anthropic();
        const baseURL = anthropic.baseUrl ?? anthropicBaseUrl;
        return createAnthropic({ apiKey: anthropic.apiKey ?? '', baseURL, fetch }).languageModel(providerModelId);
      }
      case 'compatible': {
        const { createOpenAICompatible } = await sdks.compatible();
        return createOpenAICompatible({
          name: 'compatible',
          apiKey: compatible.apiKey,
          baseURL: compatible.baseUrl ?? '',
          includeUsage: true,
          supportsStructuredOutputs: true,
          fetch,
        }).chatModel(providerModelId);
      }
      case 'demo':
        return createDemoModel();
    }
  }
}
