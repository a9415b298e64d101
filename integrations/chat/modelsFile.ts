import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { z } from 'zod';
import { ConfigError } from '../../config/index.ts';
import { knownEfforts } from './callOptions.ts';
import type { CatalogueModel, EmbeddingModel } from './catalogue.ts';

const rateSchema = z.strictObject({
  label: z.string().min(1).max(60),
  credits: z.string().min(1).max(60).optional(),
  creditsPerUnit: z.number().min(0),
  unit: z.string().min(1).max(60),
});

const modelSchema = z
  .strictObject({
    id: z.string().min(1).max(120),
    name: z.string().min(1).max(120).optional(),
    provider: z.enum(['openai', 'anthropic', 'compatible', 'demo']),
    model: z.string().min(1).max(200).optional(),
    pricingRates: z.array(rateSchema).max(20).default([]),
    effortOptions: z.array(z.enum(knownEfforts)).default([]),
    defaultEffort: z.enum(knownEfforts).optional(),
    capabilities: z
      .strictObject({
        images: z.boolean().default(false),
        pdf: z.boolean().default(false),
        tools: z.boolean().default(true),
        reasoning: z.boolean().default(false),
        continues: z.boolean().optional(),
        contextWindowTokens: z.number().int().min(1_000).default(128_000),
        maxOutputTokens: z.number().int().min(1).default(16_384),
      })
      .prefault({}),
    providerOptions: z.record(z.string(), z.json()).default({}),
  })
  .refine((model) => model.defaultEffort === undefined || model.effortOptions.includes(model.defaultEffort), {
    path: ['defaultEffort'],
    message: 'not one of effortOptions',
  });

const embeddingSchema = z.strictObject({
  id: z.string().min(1).max(120),
  provider: z.enum(['openai', 'compatible']),
  model: z.string().min(1).max(200).optional(),
  pricingRates: z.array(rateSchema).max(20).default([]),
});

const fileSchema = z
  .strictObject({
    models: z.array(modelSchema).min(1).max(200).optional(),
    embeddingModels: z.array(embeddingSchema).max(200).default([]),
    defaultModelId: z.string().optional(),
  })
  .superRefine(({ models = [], embeddingModels }, context) => {
    if (models.length + embeddingModels.length === 0) {
      context.addIssue({ code: 'custom', path: [], message: 'it names neither models nor embeddingModels' });
    }
    const seen = new Set<string>();
    for (const [list, of] of Object.entries({ models, embeddingModels })) {
      for (const [index, { id }] of of.entries()) {
        if (seen.has(id))
          context.addIssue({ code: 'custom', path: [list, index, 'id'], message: `"${id}" is there twice` });
        seen.add(id);
      }
    }
  });

export interface ModelsFile {
  /** Undefined if the file has only models for embeddings: the built-in list stays then. */
  models: CatalogueModel[] | undefined;
  embeddingModels: EmbeddingModel[];
  defaultModelId: string | undefined;
}

/** Reads ATRIUM_MODELS_FILE, YAML or JSON. Throws {@link ConfigError} with one line that says where it is wrong. */
export function readModelsFile(path: string, compatibleName: string): ModelsFile {
  const wrong = (detail: string) => new ConfigError(`ATRIUM_MODELS_FILE (${path}) is not right: ${detail}.`);
  let content: unknown;
  try {
    content = load(readFileSync(path, 'utf8'));
  } catch (error) {
    throw wrong(firstLine(error));
  }
  const result = fileSchema.safeParse(content);
  if (!result.success) {
    const issue = result.error.issues[0];
    throw wrong(`${issue?.path.join('.') || 'the file'}: ${issue?.message ?? 'unknown'}`);
  }
  const { models, embeddingModels, defaultModelId } = result.data;
  const servedBy = ({
    provider,
    model,
    pricingRates,
    id,
  }: z.infer<typeof embeddingSchema> | z.infer<typeof modelSchema>) => ({
    adapter: provider,
    provider: provider === 'compatible' ? compatibleName : provider,
    providerModelId: model ?? id,
    pricingRates: pricingRates.map((rate) => ({ ...rate, credits: rate.credits ?? String(rate.creditsPerUnit) })),
  });
  return {
    defaultModelId,
    models: models?.map((entry) => {
      const { provider: _, model: __, pricingRates: ___, name, ...rest } = entry;
      return { ...rest, ...servedBy(entry), name: name ?? rest.id, defaultEffort: rest.defaultEffort };
    }),
    embeddingModels: embeddingModels.map((entry) => ({ id: entry.id, ...servedBy(entry) })),
  };
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split('\n')[0] ?? message).replace(/[.:]$/, '');
}
