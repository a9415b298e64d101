import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError } from '../../../config/index.ts';
import { createCatalogue } from '../../../integrations/chat/catalogue.ts';
import { llmConfig } from './support.ts';

const folder = mkdtempSync(join(tmpdir(), 'atrium-models-'));
afterAll(() => rmSync(folder, { recursive: true }));

function catalogueOf(content: string, settings: Record<string, string> = {}) {
  const path = join(folder, 'models.yaml');
  writeFileSync(path, content);
  return createCatalogue(llmConfig({ ATRIUM_OPENAI_API_KEY: 'key', ATRIUM_MODELS_FILE: path, ...settings }));
}

const full = `
defaultModelId: fast
models:
  - id: careful
    name: Careful
    provider: openai
    model: gpt-5.1
    effortOptions: [low, high]
    defaultEffort: high
    pricingRates:
      - { label: Output, creditsPerUnit: 12.5, unit: 1M tokens }
    capabilities: { images: true, reasoning: true, contextWindowTokens: 272000, maxOutputTokens: 128000 }
    providerOptions: { reasoningSummary: auto }
  - { id: fast, provider: openai, model: gpt-5-mini }
  - { id: elsewhere, provider: anthropic }
`;

test.each([
  ['alone', `models: [DEMO]`, {}],
  ['beside models of providers that are not configured', `models: [{ id: far, provider: anthropic }, DEMO]`, {}],
  ['where it is asked for', `models: [DEMO]`, { ATRIUM_DEMO_MODEL: 'true' }],
])('a demo model in the models file is used with its price: %s', (_name, content, settings) => {
  const demo =
    '{ id: practice, provider: demo, pricingRates: [{ label: Output, creditsPerUnit: 10, unit: 1K tokens }] }';
  const catalogue = catalogueOf(content.replace('DEMO', demo), { ATRIUM_OPENAI_API_KEY: '', ...settings });
  expect(catalogue.list()).toMatchObject([{ id: 'practice', adapter: 'demo', pricingRates: [{ creditsPerUnit: 10 }] }]);
  expect(catalogue.defaultModelId).toBe('practice');
});

test('a models file replaces the built-in list', () => {
  const catalogue = catalogueOf(full);
  expect(catalogue.list().map(({ id }) => id)).toEqual(['careful', 'fast']);
  expect(catalogue.defaultModelId).toBe('fast');
  expect(catalogue.find('careful')).toEqual({
    id: 'careful',
    name: 'Careful',
    provider: 'openai',
    adapter: 'openai',
    providerModelId: 'gpt-5.1',
    pricingRates: [{ label: 'Output', credits: '12.5', creditsPerUnit: 12.5, unit: '1M tokens' }],
    effortOptions: ['low', 'high'],
    defaultEffort: 'high',
    capabilities: {
      images: true,
      pdf: false,
      tools: true,
      reasoning: true,
      contextWindowTokens: 272_000,
      maxOutputTokens: 128_000,
    },
    providerOptions: { reasoningSummary: 'auto' },
  });
});

test('the models file may be JSON, and ATRIUM_DEFAULT_MODEL wins over its default', () => {
  const json = JSON.stringify({
    models: [
      { id: 'a', provider: 'openai' },
      { id: 'b', provider: 'openai' },
    ],
    defaultModelId: 'a',
  });
  expect(catalogueOf(json, { ATRIUM_DEFAULT_MODEL: 'b' }).defaultModelId).toBe('b');
});

test.each([
  ['models: [', /flow|Flow|collection/],
  ['', /the input is empty/],
  ['models: []', /models: /],
  ['models: [{ id: a }]', /models\.0\.provider/],
  ['models: [{ id: a, provider: nobody }]', /models\.0\.provider/],
  ['models: [{ id: a, provider: openai, prices: [] }]', /prices/],
  ['models: [{ id: a, provider: openai, effortOptions: [extreme] }]', /models\.0\.effortOptions\.0/],
  ['models: [{ id: a, provider: openai, defaultEffort: low }]', /defaultEffort: not one of effortOptions/],
  ['models: [{ id: a, provider: openai }, { id: a, provider: openai }]', /models\.1\.id: "a" is there twice/],
])('the content %j gives an error in one line that names the wrong place', (content, message) => {
  let error: unknown;
  try {
    catalogueOf(content);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as Error).message).toMatch(/^ATRIUM_MODELS_FILE \(.*\) is not right: /);
  expect((error as Error).message).toMatch(message);
  expect((error as Error).message).not.toContain('\n');
});

test('a missing models file gives an error in one line', () => {
  const missing = llmConfig({ ATRIUM_MODELS_FILE: join(folder, 'missing.yaml') });
  expect(() => createCatalogue(missing)).toThrow(/ATRIUM_MODELS_FILE .* no such file/);
});

describe('a models file with models for embeddings only', () => {
  const embeds = 'embeddingModels: [{ id: embed, provider: compatible }]';
  const compatible = { ATRIUM_COMPATIBLE_BASE_URL: 'http://llm.example/v1' };

  test('keeps the built-in models for chats', () => {
    const catalogue = catalogueOf(embeds, compatible);
    expect(catalogue.list().map(({ provider }) => provider)).toContain('openai');
    expect(catalogue.embeddings.map(({ id }) => id)).toEqual(['embed']);
  });

  test('is enough for a compatible server', () => {
    const catalogue = catalogueOf(embeds, { ...compatible, ATRIUM_OPENAI_API_KEY: '' });
    expect(catalogue.list().map(({ id }) => id)).toEqual(['demo']);
    expect(catalogue.embeddings.map(({ id }) => id)).toEqual(['embed', 'demo-embedding']);
  });

  test('must name some', () => {
    expect(() => catalogueOf('embeddingModels: []')).toThrow(/names neither models nor embeddingModels/);
  });
});
