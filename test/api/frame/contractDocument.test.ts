import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readDocument } from '../../../api/frame/contractDocument.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atrium-contract-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const extra = { 'extra.yaml': 'paths: {/extra: {get: {operationId: getExtra, responses: {}}}}' };

test('The cached document is used as long as the YAML is the same', () => {
  const { document } = readDocument();
  const cacheDir = join(folder, 'made');
  expect(readDocument({}, cacheDir).document).toEqual(document);
  const [name = '', ...others] = readdirSync(cacheDir);
  expect(others).toEqual([]);
  expect(readDocument({}, cacheDir).document).toEqual(document);
  expect(readDocument(extra, cacheDir).document.paths).toHaveProperty('/extra');
  expect(readdirSync(cacheDir)).toHaveLength(2);

  const kept = JSON.parse(readFileSync(join(cacheDir, name), 'utf8')) as object;
  writeFileSync(join(cacheDir, name), JSON.stringify({ ...kept, info: { title: 'kept' } }));
  expect(readDocument({}, cacheDir).document.info).toEqual({ title: 'kept' });
});

test('A broken cache file is made again, and the contract is read without a cache if the folder is not writable', () => {
  const { document } = readDocument({}, folder);
  const [name = ''] = readdirSync(folder);
  writeFileSync(join(folder, name), '{"openapi');
  expect(readDocument({}, folder).document).toEqual(document);
  expect(JSON.parse(readFileSync(join(folder, name), 'utf8'))).toEqual(document);
  expect(readDocument({}, join(folder, name)).document).toEqual(document);
});

test('No comma cuts a sentence: YAML reads what follows an unquoted comma as a key', () => {
  const cut: string[] = [];
  const look = (value: unknown, at: string) => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, one] of Object.entries(value)) {
      if (one === null && key.includes(' ')) cut.push(`${at}/${key}`);
      look(one, `${at}/${key}`);
    }
  };
  look(readDocument().document, '');
  expect(cut).toEqual([]);
});

test('Every operation that takes an idempotency key declares 409 and 422', () => {
  const refusals: string[] = [];
  for (const [path, operations] of Object.entries(readDocument().document.paths ?? {})) {
    for (const [method, operation] of Object.entries(operations ?? {})) {
      if (!JSON.stringify(operation).includes('parameters/IdempotencyKey')) continue;
      const { responses = {} } = operation as { responses?: object };
      for (const status of ['409', '422']) if (!(status in responses)) refusals.push(`${method} ${path} ${status}`);
    }
  }
  expect(refusals).toEqual([]);
});
