/** What a model costs, as endpoint 1 shows it (spec §2): `credits` is for people, `creditsPerUnit` for arithmetic. */
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
  contextWindowTokens: number;
  maxOutputTokens: number;
}

export type ProviderName = 'openai' | 'anthropic' | 'compatible' | 'demo';

export interface CatalogueModel {
  id: string;
  name: string;
  provider: ProviderName;
  /** The provider's own name of the model. */
  providerModelId: string;
  pricingRates: PricingRate[];
  /** From the least to the most; empty when the model has no such setting. */
  effortOptions: string[];
  defaultEffort: string | undefined;
  capabilities: ModelCapabilities;
}

/** What a turn needs of a model, for `autoModel`'s rules (docs/models.md). */
export interface ModelNeeds {
  images?: boolean;
  pdf?: boolean;
  tools?: boolean;
  /** A rough count of the prompt's tokens. */
  inputTokens?: number;
}

export interface ModelChoice {
  model: CatalogueModel;
  /** The effort to call it with; undefined when the model has none. */
  effort: string | undefined;
}

export interface Catalogue {
  list(): CatalogueModel[];
  find(id: string): CatalogueModel | undefined;
  readonly defaultModelId: string;
  /**
   * The model for a turn: `modelId` beats `autoModel`, which beats the default. Throws
   * DomainError 'unprocessable' MODEL_UNKNOWN or EFFORT_UNKNOWN, naming what there is.
   */
  resolve(request: {
    modelId?: string | null;
    autoModel?: boolean;
    effort?: string | null;
    needs?: ModelNeeds;
  }): ModelChoice;
  /** The models to try, in order, when this one's provider fails: the rest of the catalogue that can do as much. */
  fallbacksOf(modelId: string, needs?: ModelNeeds): CatalogueModel[];
}
