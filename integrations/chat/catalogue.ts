import type { JSONObject } from '@ai-sdk/provider';
import { type Config, ConfigError } from '../../config/index.ts';
import { builtinEmbeddings, builtinModels, demoEmbedding, demoModel, unknownModel } from './builtinModels.ts';
import { canDo, cheapest, chooseModel, effortOf, effortOrDefault, refused } from './modelRules.ts';
import { type ModelsFile, readModelsFile } from './modelsFile.ts';

/** A price of a model, as `GET /chat/models` lists it. `credits` is for people, `creditsPerUnit` for arithmetic. */
export interface PricingRate {
  label: string;
  credits: string;
  creditsPerUnit: number;
  unit: string;
}

export interface ModelCapabilities {
  images: boolean;
  pdf: boolean;
  tools: boolean;
  reasoning: boolean;
  /**
   * Whether the model continues a prompt that ends with its own message. Providers refuse this for calls that reason.
   */
  continues?: boolean;
  contextWindowTokens: number;
  maxOutputTokens: number;
}

export type ProviderName = 'openai' | 'anthropic' | 'compatible' | 'demo';

export interface CatalogueModel {
  id: string;
  name: string;
  /** The provider's display name. For an OpenAI-compatible server it is the operator's name for it. */
  provider: string;
  /** The SDK that calls the model. */
  adapter: ProviderName;
  /** The provider's own name of the model. */
  providerModelId: string;
  pricingRates: PricingRate[];
  /** From the least to the most; empty when the model has no such setting. */
  effortOptions: string[];
  defaultEffort: string | undefined;
  capabilities: ModelCapabilities;
  /** Further settings from the models file, passed to the provider as they are. */
  providerOptions: JSONObject;
}

/** A model that turns texts into vectors. It answers no turns, and only `POST /v1/embeddings` uses it. */
export type EmbeddingModel = Pick<CatalogueModel, 'id' | 'provider' | 'adapter' | 'providerModelId' | 'pricingRates'>;

/** What a turn requires of a model, for `autoModel` and for fallbacks (docs/models.md has the rules). */
export interface ModelNeeds {
  images?: boolean;
  pdf?: boolean;
  tools?: boolean;
  mode?: 'ask' | 'work';
  /** A rough count of the prompt's tokens (tokens.ts). */
  inputTokens?: number;
}

export interface ModelRequest {
  modelId?: string | null;
  autoModel?: boolean;
  effort?: string | null;
  needs?: ModelNeeds;
}

export interface ModelChoice {
  model: CatalogueModel;
  /** The effort to call it with; undefined when the model has none. */
  effort: string | undefined;
}

export interface Catalogue {
  /** The usable models, in fallback order. */
  list(): CatalogueModel[];
  find(id: string): CatalogueModel | undefined;
  /** The usable models for embeddings. */
  readonly embeddings: readonly EmbeddingModel[];
  readonly defaultModelId: string;
  /**
   * The model for a turn: `modelId` beats `autoModel`, which beats the default. Throws DomainError 'unprocessable'
   * MODEL_UNKNOWN, MODEL_UNSUITABLE or EFFORT_UNKNOWN, each naming the alternatives.
   */
  resolve(request: ModelRequest): ModelChoice;
  /** The models to try, in order, if this model's provider fails: the other models that meet the needs. */
  fallbacksOf(modelId: string, request?: Pick<ModelRequest, 'effort' | 'needs'>): ModelChoice[];
  /** The model that names a thread which this model has answered; undefined if threads get no names. */
  titleModelFor(modelId: string): CatalogueModel | undefined;
}

/** Builds the catalogue from the configuration, once at start. Throws {@link ConfigError} with one line. */
export function createCatalogue(config: Config['llm']): Catalogue {
  const file = config.modelsFile === undefined ? undefined : readModelsFile(config.modelsFile, config.compatible.name);
  const named = namedEmbeddings(config, file);
  const models = usableModels(config, file, named);
  const byId = new Map(models.map((model) => [model.id, model]));
  const ids = models.map((model) => model.id).join(', ');
  const defaultModelId = config.defaultModelId ?? file?.defaultModelId ?? models[0]?.id ?? demoModel.id;
  if (!byId.has(defaultModelId)) {
    throw new ConfigError(`The default model "${defaultModelId}" is not among the usable ones: ${ids}.`);
  }

  const { titleModel } = config;
  if (titleModel !== 'auto' && titleModel !== 'off' && !byId.has(titleModel)) {
    throw new ConfigError(`ATRIUM_TITLE_MODEL "${titleModel}" is not among the usable models: ${ids}.`);
  }

  return {
    list: () => [...models],
    find: (id) => byId.get(id),
    embeddings: withDemoEmbedding(models, named),
    defaultModelId,
    resolve({ modelId, autoModel, effort, needs = {} }) {
      if (typeof modelId !== 'string' && autoModel === true) {
        return chooseModel(models, defaultModelId, needs, effort ?? undefined);
      }
      const model = byId.get(modelId ?? defaultModelId);
      if (model === undefined) {
        throw refused('MODEL_UNKNOWN', `There is no such model. Available are: ${ids}.`, '/modelId');
      }
      return { model, effort: effortOf(model, effort) };
    },
    titleModelFor(modelId) {
      if (titleModel !== 'auto') return byId.get(titleModel);
      // This provider has seen the thread already, so no other company gets to see it.
      const model = byId.get(modelId);
      return model && cheapest(models.filter(({ provider }) => provider === model.provider));
    },
    fallbacksOf(modelId, { effort, needs = {} } = {}) {
      const index = models.findIndex((model) => model.id === modelId);
      const others = [...models.slice(index + 1), ...models.slice(0, Math.max(index, 0))];
      return others
        .filter((model) => model.adapter !== 'demo' && canDo(model, needs))
        .map((model) => ({ model, effort: effortOrDefault(model, effort) }));
    },
  };
}

/**
 * The models whose provider is configured. The demo model is added on request, or if there is no other; it is the
 * models file's entry with its price, or else the built-in one.
 */
function usableModels(
  config: Config['llm'],
  file: ModelsFile | undefined,
  embeddings: readonly EmbeddingModel[],
): CatalogueModel[] {
  const configured = configuredIn(config);
  const { name, modelIds } = config.compatible;
  const all = file?.models ?? [...builtinModels, ...modelIds.map((id) => unknownModel(id, name))];
  const usable = all.filter((model) => configured[model.adapter]);
  if (configured.compatible && ![...usable, ...embeddings].some(({ adapter }) => adapter === 'compatible')) {
    throw new ConfigError(
      'ATRIUM_COMPATIBLE_BASE_URL is set, but no model of it is known. Name some in ATRIUM_COMPATIBLE_MODELS or ATRIUM_MODELS_FILE, ' +
        'or models for embeddings in ATRIUM_COMPATIBLE_EMBEDDING_MODELS.',
    );
  }
  const needsDemo = usable.length === 0 || (config.demoModel && !usable.some((model) => model.adapter === 'demo'));
  if (!needsDemo) return usable;
  const described = all.filter((model) => model.adapter === 'demo');
  return [...usable, ...(described.length > 0 ? described : [demoModel])];
}

/** Those of the models file, or else OpenAI's and the compatible server's in `ATRIUM_COMPATIBLE_EMBEDDING_MODELS`. */
function namedEmbeddings(config: Config['llm'], file: ModelsFile | undefined): EmbeddingModel[] {
  const configured = configuredIn(config);
  const { name, embeddingModelIds } = config.compatible;
  const ofServer = embeddingModelIds.map((id) => unknownModel(id, name));
  return (file?.embeddingModels ?? [...builtinEmbeddings, ...ofServer]).filter(({ adapter }) => configured[adapter]);
}

/** The demo's vectors stand beside the demo model, so that embeddings can be tried without an account, too. */
function withDemoEmbedding(
  models: readonly CatalogueModel[],
  embeddings: readonly EmbeddingModel[],
): readonly EmbeddingModel[] {
  const isTaken = [...models, ...embeddings].some(({ id }) => id === demoEmbedding.id);
  return isTaken || !models.some(({ adapter }) => adapter === 'demo') ? embeddings : [...embeddings, demoEmbedding];
}

function configuredIn(config: Config['llm']): Record<ProviderName, boolean> {
  return {
    openai: config.openai.apiKey !== undefined,
    anthropic: config.anthropic.apiKey !== undefined,
    compatible: config.compatible.baseUrl !== undefined,
    demo: config.demoModel,
  };
}
