import type { CatalogueModel, EmbeddingModel, ModelCapabilities, PricingRate, ProviderName } from './catalogue.ts';

/**
 * The models that exist without a models file, each provider's in fallback order. Prices are the providers' list prices
 * at the time of writing, at one credit for one US cent. An operator who sells credits at another price writes a models
 * file (docs/models.md).
 */
interface Prices {
  input: number;
  cachedInput: number;
  output: number;
}

/** Rates as `GET /chat/models` lists them, from credits per million tokens. */
function tokenRates(prices: Prices): PricingRate[] {
  return [
    tokenRate('Input', prices.input),
    tokenRate('Cached input', prices.cachedInput),
    tokenRate('Output', prices.output),
  ];
}

function tokenRate(label: string, creditsPerMillion: number): PricingRate {
  return { label, credits: String(creditsPerMillion), creditsPerUnit: creditsPerMillion, unit: '1M tokens' };
}

function model(
  adapter: ProviderName,
  id: string,
  name: string,
  prices: Prices,
  efforts: { options: string[]; default: string | undefined },
  limits: Pick<ModelCapabilities, 'contextWindowTokens' | 'maxOutputTokens'>,
): CatalogueModel {
  return {
    id,
    name,
    adapter,
    provider: adapter,
    providerModelId: id,
    pricingRates: tokenRates(prices),
    effortOptions: efforts.options,
    defaultEffort: efforts.default,
    capabilities: {
      images: true,
      pdf: true,
      tools: true,
      reasoning: efforts.options.length > 0,
      ...(adapter === 'anthropic' && { continues: true }),
      ...limits,
    },
    providerOptions: {},
  };
}

const noEffort = { options: [], default: undefined };
const thinking = { options: ['none', 'low', 'medium', 'high'], default: 'low' };
const gpt5 = { contextWindowTokens: 272_000, maxOutputTokens: 128_000 };
const claude = { contextWindowTokens: 200_000, maxOutputTokens: 64_000 };

export const builtinModels: readonly CatalogueModel[] = [
  model(
    'anthropic',
    'claude-sonnet-4-5',
    'Claude Sonnet 4.5',
    { input: 300, cachedInput: 30, output: 1500 },
    thinking,
    claude,
  ),
  model(
    'anthropic',
    'claude-opus-4-5',
    'Claude Opus 4.5',
    { input: 500, cachedInput: 50, output: 2500 },
    thinking,
    claude,
  ),
  model(
    'anthropic',
    'claude-haiku-4-5',
    'Claude Haiku 4.5',
    { input: 100, cachedInput: 10, output: 500 },
    thinking,
    claude,
  ),
  model('openai', 'gpt-5.1', 'GPT-5.1', { input: 125, cachedInput: 12.5, output: 1000 }, thinking, gpt5),
  model(
    'openai',
    'gpt-5-mini',
    'GPT-5 mini',
    { input: 25, cachedInput: 2.5, output: 200 },
    { options: ['minimal', 'low', 'medium', 'high'], default: 'low' },
    gpt5,
  ),
  model('openai', 'gpt-4.1', 'GPT-4.1', { input: 200, cachedInput: 50, output: 800 }, noEffort, {
    contextWindowTokens: 1_000_000,
    maxOutputTokens: 32_768,
  }),
];

/** The model that needs no account. It is free and takes every kind of input, so that everything can be tried. */
export const demoModel: CatalogueModel = {
  id: 'demo',
  name: 'Demo (built in, deterministic)',
  provider: 'demo',
  adapter: 'demo',
  providerModelId: 'demo',
  pricingRates: tokenRates({ input: 0, cachedInput: 0, output: 0 }),
  effortOptions: [],
  defaultEffort: undefined,
  capabilities: {
    images: true,
    pdf: true,
    tools: true,
    reasoning: true,
    contextWindowTokens: 1_000_000,
    maxOutputTokens: 1_000_000,
  },
  providerOptions: {},
};

/**
 * A model of an OpenAI-compatible server of which only the name is known. The other values are conservative guesses.
 */
export function unknownModel(providerModelId: string, provider: string): CatalogueModel {
  return {
    id: providerModelId,
    name: providerModelId,
    provider,
    adapter: 'compatible',
    providerModelId,
    pricingRates: [],
    effortOptions: [],
    defaultEffort: undefined,
    capabilities: {
      images: false,
      pdf: false,
      tools: true,
      reasoning: false,
      contextWindowTokens: 128_000,
      maxOutputTokens: 16_384,
    },
    providerOptions: {},
  };
}

function embedding(id: string, creditsPerMillion: number): EmbeddingModel {
  const pricingRates = [tokenRate('Input', creditsPerMillion)];
  return { id, provider: 'openai', adapter: 'openai', providerModelId: id, pricingRates };
}

export const builtinEmbeddings: readonly EmbeddingModel[] = [
  embedding('text-embedding-3-small', 2),
  embedding('text-embedding-3-large', 13),
];

/** Vectors that need no account, for the same reason as {@link demoModel}. */
export const demoEmbedding: EmbeddingModel = {
  id: 'demo-embedding',
  provider: 'demo',
  adapter: 'demo',
  providerModelId: 'demo-embedding',
  pricingRates: [tokenRate('Input', 0)],
};
