import { z } from 'zod';
import { bool, integer, list, webAddress } from './kinds.ts';

export const llmSettings = z.object({
  ATRIUM_OPENAI_API_KEY: z.string().min(1).optional(),
  ATRIUM_OPENAI_BASE_URL: webAddress.optional(),
  ATRIUM_ANTHROPIC_API_KEY: z.string().min(1).optional(),
  ATRIUM_ANTHROPIC_BASE_URL: webAddress.optional(),
  ATRIUM_COMPATIBLE_BASE_URL: webAddress.optional(),
  ATRIUM_COMPATIBLE_API_KEY: z.string().min(1).optional(),
  ATRIUM_COMPATIBLE_NAME: z.string().min(1).max(60).default('compatible'),
  ATRIUM_COMPATIBLE_MODELS: list.default([]),
  ATRIUM_COMPATIBLE_EMBEDDING_MODELS: list.default([]),
  ATRIUM_MODELS_FILE: z.string().min(1).optional(),
  ATRIUM_DEFAULT_MODEL: z.string().min(1).optional(),
  ATRIUM_DEMO_MODEL: bool.default(false),
  ATRIUM_TITLE_MODEL: z.string().min(1).default('auto'),
  ATRIUM_MODEL_IDLE_TIMEOUT_SECONDS: integer(1, 3_600).default(60),
});

/** Models and their providers. */
export function llmConfig(env: z.infer<typeof llmSettings>) {
  return Object.freeze({
    openai: { apiKey: env.ATRIUM_OPENAI_API_KEY, baseUrl: env.ATRIUM_OPENAI_BASE_URL },
    anthropic: { apiKey: env.ATRIUM_ANTHROPIC_API_KEY, baseUrl: env.ATRIUM_ANTHROPIC_BASE_URL },
    compatible: {
      name: env.ATRIUM_COMPATIBLE_NAME,
      apiKey: env.ATRIUM_COMPATIBLE_API_KEY,
      baseUrl: env.ATRIUM_COMPATIBLE_BASE_URL,
      /** The server's models by name. Replaces a models file. */
      modelIds: env.ATRIUM_COMPATIBLE_MODELS,
      /** Its models for embeddings. A models file replaces these, too. */
      embeddingModelIds: env.ATRIUM_COMPATIBLE_EMBEDDING_MODELS,
    },
    modelsFile: env.ATRIUM_MODELS_FILE,
    defaultModelId: env.ATRIUM_DEFAULT_MODEL,
    /** Lists the demo model beside real ones. Without real ones it is always listed. */
    demoModel: env.ATRIUM_DEMO_MODEL,
    /** The model that names new threads: `auto`, `off`, or an id of the catalogue. */
    titleModel: env.ATRIUM_TITLE_MODEL,
    /** How long a provider may be silent within one call. */
    idleTimeoutMs: env.ATRIUM_MODEL_IDLE_TIMEOUT_SECONDS * 1000,
  });
}
