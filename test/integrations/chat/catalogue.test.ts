import { builtinModels, unknownModel } from '../../../integrations/chat/builtinModels.ts';
import { type CatalogueModel, createCatalogue } from '../../../integrations/chat/catalogue.ts';
import { chooseModel } from '../../../integrations/chat/modelRules.ts';
import { llmConfig } from './support.ts';

const openai = { ATRIUM_OPENAI_API_KEY: 'key' };
const anthropic = { ATRIUM_ANTHROPIC_API_KEY: 'key' };
const compatible = { ATRIUM_COMPATIBLE_BASE_URL: 'http://llm.example/v1' };
const catalogueOf = (...settings: Record<string, string>[]) =>
  createCatalogue(llmConfig(Object.assign({}, ...settings)));
const ids = (models: readonly CatalogueModel[]) => models.map(({ id }) => id);

describe('the list of models', () => {
  test('has only the demo model without a provider', () => {
    const catalogue = catalogueOf();
    expect(ids(catalogue.list())).toEqual(['demo']);
    expect(catalogue.defaultModelId).toBe('demo');
  });

  test('has only the models of the configured providers', () => {
    expect(
      new Set(
        catalogueOf(openai)
          .list()
          .map(({ provider }) => provider),
      ),
    ).toEqual(new Set(['openai']));
    expect(ids(catalogueOf(openai, anthropic).list())).toEqual(ids(builtinModels));
  });

  test('has the demo model beside real ones if a setting asks for it', () => {
    expect(ids(catalogueOf(openai, { ATRIUM_DEMO_MODEL: 'true' }).list()).at(-1)).toBe('demo');
  });

  test("has the named models of a compatible server, under the server's name", () => {
    const catalogue = catalogueOf(compatible, { ATRIUM_COMPATIBLE_NAME: 'basement', ATRIUM_COMPATIBLE_MODELS: 'a, b' });
    expect(ids(catalogue.list())).toEqual(['a', 'b']);
    expect(catalogue.find('a')).toMatchObject({ provider: 'basement', adapter: 'compatible' });
  });

  test('has valid rates and a valid default effort for each model', () => {
    for (const model of builtinModels) {
      for (const rate of model.pricingRates) {
        expect(
          Object.entries(rate)
            .map(([name, value]) => [name, typeof value])
            .sort(),
        ).toEqual([
          ['credits', 'string'],
          ['creditsPerUnit', 'number'],
          ['label', 'string'],
          ['unit', 'string'],
        ]);
      }
      if (model.defaultEffort !== undefined) expect(model.effortOptions).toContain(model.defaultEffort);
    }
  });
});

describe('the models for embeddings', () => {
  const named = { ATRIUM_COMPATIBLE_EMBEDDING_MODELS: 'embed' };
  const embeddingIds = (...settings: Record<string, string>[]) =>
    catalogueOf(...settings).embeddings.map(({ id }) => id);

  test('are enough for a compatible server: the demo model answers chats then', () => {
    expect(ids(catalogueOf(compatible, named).list())).toEqual(['demo']);
    expect(embeddingIds(compatible, named)).toEqual(['embed', 'demo-embedding']);
  });

  test('are those of the configured providers, and the demo’s only beside the demo model', () => {
    expect(embeddingIds()).toEqual(['demo-embedding']);
    expect(embeddingIds(named)).toEqual(['demo-embedding']);
    expect(embeddingIds(openai)).toEqual(['text-embedding-3-small', 'text-embedding-3-large']);
    expect(embeddingIds(anthropic)).toEqual([]);
  });
});

test.each([
  [compatible, /ATRIUM_COMPATIBLE_MODELS or ATRIUM_MODELS_FILE/],
  [{ ...openai, ATRIUM_DEFAULT_MODEL: 'nothing' }, /"nothing" is not among the usable ones: gpt-5\.1, /],
])('a wrong setting gives an error in one line: %#', (settings, message) => {
  expect(() => catalogueOf(settings)).toThrow(message);
});

describe('the model of a turn', () => {
  const catalogue = catalogueOf(openai, anthropic);

  test('is the default model with its default effort if the request names none', () => {
    expect(catalogue.resolve({})).toMatchObject({ model: { id: catalogue.defaultModelId }, effort: 'low' });
    expect(catalogue.resolve({ modelId: null, effort: null }).model.id).toBe(catalogue.defaultModelId);
  });

  test('is the named model, also beside autoModel', () => {
    const choice = catalogue.resolve({ modelId: 'gpt-5-mini', autoModel: true, effort: 'high' });
    expect(choice).toMatchObject({ model: { id: 'gpt-5-mini' }, effort: 'high' });
  });

  test.each([
    [{ modelId: 'nothing' }, 'MODEL_UNKNOWN', /Available are: claude-sonnet-4-5, .*gpt-4\.1\.$/],
    [{ modelId: 'demo' }, 'MODEL_UNKNOWN', /Available are/],
    [{ modelId: 'gpt-5-mini', effort: 'none' }, 'EFFORT_UNKNOWN', /It has: minimal, low, medium, high\.$/],
    [{ modelId: 'gpt-4.1', effort: 'low' }, 'EFFORT_UNKNOWN', /gpt-4\.1 takes no effort\.$/],
    [{ autoModel: true, effort: 'extreme' }, 'EFFORT_UNKNOWN', /none, low, medium, high, minimal/],
    [{ autoModel: true, needs: { inputTokens: 2_000_000 } }, 'MODEL_UNSUITABLE', /claude-sonnet-4-5/],
  ])('is refused for %j with %s and the list of choices', (request, code, message) => {
    expect(() => catalogue.resolve(request)).toThrow(expect.objectContaining({ kind: 'unprocessable', code }));
    expect(() => catalogue.resolve(request)).toThrow(message);
  });
});

describe('autoModel', () => {
  const model = (
    id: string,
    outputPrice: number,
    more: Partial<CatalogueModel['capabilities']> = {},
    efforts: string[] = [],
  ) => {
    const plain = unknownModel(id, 'x');
    return {
      ...plain,
      pricingRates: [{ label: 'Output', credits: '', creditsPerUnit: outputPrice, unit: '1M tokens' }],
      effortOptions: efforts,
      capabilities: { ...plain.capabilities, ...more },
    };
  };
  const models = [
    model('main', 10, {}, ['low']),
    model('seeing', 20, { images: true, pdf: true }),
    model('cheap', 1),
    model('toolless', 0.5, { tools: false }),
    model('long', 30, { contextWindowTokens: 1_000_000 }, ['high']),
  ];

  test.each([
    ['a small question goes to the cheapest', { mode: 'ask' as const }, undefined, 'toolless'],
    ['… that has what it needs', { mode: 'ask' as const, tools: true }, undefined, 'cheap'],
    ['a longer one to the default', { mode: 'ask' as const, inputTokens: 8_001 }, undefined, 'main'],
    ['work goes to the default', { mode: 'work' as const }, undefined, 'main'],
    ['an image to the first that sees it', { mode: 'work' as const, images: true }, undefined, 'seeing'],
    ['an image in a small question too', { mode: 'ask' as const, images: true }, undefined, 'seeing'],
    ['a PDF to the first that reads it', { pdf: true }, undefined, 'seeing'],
    ['a long prompt to the first that holds it', { inputTokens: 125_000 }, undefined, 'long'],
    ['an effort to the first that has it', {}, 'high', 'long'],
    ['a default that has the effort stays', {}, 'low', 'main'],
  ])('%s', (_name, needs, effort, expected) => {
    expect(chooseModel(models, 'main', needs, effort).model.id).toBe(expected);
  });
});

describe('fallbacks', () => {
  const catalogue = catalogueOf(openai, anthropic, { ATRIUM_DEMO_MODEL: 'true' });
  const fallbackIds = (...args: Parameters<typeof catalogue.fallbacksOf>) =>
    catalogue.fallbacksOf(...args).map(({ model }) => model.id);

  test('follow the order of the catalogue from the model on, without the demo model', () => {
    expect(fallbackIds('gpt-5.1')).toEqual([
      'gpt-5-mini',
      'gpt-4.1',
      'claude-sonnet-4-5',
      'claude-opus-4-5',
      'claude-haiku-4-5',
    ]);
  });

  test('leave out models that cannot take the turn', () => {
    expect(fallbackIds('gpt-5.1', { needs: { inputTokens: 500_000 } })).toEqual(['gpt-4.1']);
  });

  test('keep the effort if the other model has it', () => {
    const efforts = catalogue.fallbacksOf('gpt-5.1', { effort: 'none' }).map(({ model, effort }) => [model.id, effort]);
    expect(efforts.slice(0, 3)).toEqual([
      ['gpt-5-mini', 'low'],
      ['gpt-4.1', undefined],
      ['claude-sonnet-4-5', 'none'],
    ]);
  });
});
