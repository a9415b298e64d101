import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCatalogue } from '../../../integrations/chat/catalogue.ts';
import { isProviderErrorCode, ProviderError } from '../../../integrations/chat/errors.ts';
import { llmConfig } from './support.ts';

const page = readFileSync(new URL('../../../docs/models.md', import.meta.url), 'utf8');

test('the models file in docs/models.md is valid', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atrium-docs-'));
  const path = join(folder, 'models.yaml');
  writeFileSync(path, /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '');
  const catalogue = createCatalogue(llmConfig({ ATRIUM_OPENAI_API_KEY: 'key', ATRIUM_MODELS_FILE: path }));
  rmSync(folder, { recursive: true });
  expect(catalogue.resolve({})).toMatchObject({ model: { id: 'fast', providerModelId: 'gpt-5-mini' }, effort: 'low' });
});

test('docs/models.md says for each error code whether it is retried and falls back', () => {
  const rows = [...page.matchAll(/^\| `([A-Z_]+)` +\| .* \| (yes|no) +\| (yes|no) +\|$/gm)];
  expect(rows).toHaveLength(13);
  for (const [, code = '', retryable, fallback] of rows) {
    if (!isProviderErrorCode(code)) throw new Error(`${code} is not a code`);
    const error = new ProviderError(code);
    expect([code, error.retryable, error.fallback]).toEqual([code, retryable === 'yes', fallback === 'yes']);
  }
});
