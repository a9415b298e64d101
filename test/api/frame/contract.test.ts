import { readFileSync } from 'node:fs';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { middleware } from 'express-openapi-validator';
import { accessOf } from '../../../api/frame/auth/access.ts';
import { loadContract } from '../../../api/frame/contract.ts';
import { mergeParts, readDocument } from '../../../api/frame/contractDocument.ts';
import { accessTable } from '../../../api/registry.ts';
import { scopes } from '../../../models/identity/scopes.ts';
import { parametersOf } from '../../builders/operationCall.ts';
import { builderOf } from '../../builders/world.ts';

// Checks what the header of contract/common.yaml promises for every operation and schema, also those of later areas.

type Json = Record<string, unknown>;
type Media = { schema?: Json; example?: unknown; examples?: Record<string, { value: unknown }> };

const contract = loadContract();
const document = contract.document as unknown as Json & { components: { schemas: Record<string, Json> } };
const operations = contract.operations.map((operation) => {
  const item = (document.paths as Record<string, Record<string, Json>>)[operation.path] ?? {};
  return { ...operation, raw: item[operation.method.toLowerCase()] as Json };
});

const ajv = new Ajv2020.default({ strict: false, validateFormats: true, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(document, 'contract');

function resolve(value: Json): Json {
  const ref = value.$ref;
  if (typeof ref !== 'string') return value;
  let found: unknown = document;
  for (const part of ref.replace('#/', '').split('/')) found = (found as Json)[part];
  return resolve(found as Json);
}

function mediaOf(holder: Json | undefined): [string, Media][] {
  return Object.entries((resolve(holder ?? {}).content ?? {}) as Record<string, Media>);
}

function examplesOf(media: Media): unknown[] {
  return [
    ...(media.example === undefined ? [] : [media.example]),
    ...Object.values(media.examples ?? {}).map((example) => example.value),
  ];
}

function errorsOf(schema: Json, example: unknown): unknown[] {
  const pointers = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"contract#/')) as Json;
  const validate = ajv.compile(pointers);
  return validate(example) ? [] : (validate.errors ?? []);
}

test('The contract is OpenAPI 3.1.0, version 1.0.0, for http://localhost:8080', () => {
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { version: '1.0.0' },
    servers: [{ url: 'http://localhost:8080' }],
  });
});

test('The contract is valid OpenAPI', async () => {
  const [load] = middleware({ apiSpec: structuredClone(document) as never, validateApiSpec: true });
  const error = await new Promise((resolve) =>
    load?.({ app: { param: () => undefined } } as never, {} as never, resolve),
  );
  expect(error).toBeUndefined();
});

test('The generated types are of this contract', () => {
  const types = readFileSync(new URL('../../../api/generated/types.gen.ts', import.meta.url), 'utf8');
  // When this fails: npm run contract
  expect(/sha256 ([0-9a-f]{64})/.exec(types)?.[1]).toBe(readDocument().hash);
});

test('A path that two parts describe is refused, and so is a key that would be ignored', () => {
  const parts = (text: string) => () => mergeParts({ 'common.yaml': 'paths: { /a: {} }', 'other.yaml': text });
  expect(parts('paths: { /b: {} }\ntags: [{ name: B }]')()).toEqual({
    paths: { '/a': {}, '/b': {} },
    tags: [{ name: 'B' }],
  });
  expect(parts('paths: { /a: {} }')).toThrow('other.yaml describes /a');
  expect(parts('components: { schemas: {} }\ninfo: {}')).toThrow('other.yaml has "info"');
});

test('operation ids are unique', () => {
  expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
});

test('The contract lists exactly the scopes that keys know', () => {
  expect(document.components.schemas.Scope?.enum).toEqual(Object.keys(scopes));
  for (const name of Object.keys(scopes))
    expect(document.components.schemas.Scope?.description).toContain(`\`${name}\``);
});

describe.each(operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
  '%s',
  (_name, operation) => {
    const { raw, isPublic, takesApiKey, scope, bodyTypes, answerTypes } = operation;
    const responses = raw.responses as Record<string, Json>;
    const statuses = Object.keys(responses);

    test('The operation has an id, a summary and a known tag', () => {
      expect(operation.id).toMatch(/^[a-z][A-Za-z0-9]+$/);
      expect(raw.summary).toMatch(/\S/);
      const known = (document.tags as { name: string }[]).map(({ name }) => name);
      expect(raw.tags).toHaveLength(1);
      expect(known).toContain((raw.tags as string[])[0]);
    });

    test('The operation names every status that the frame can give', () => {
      const isService = (raw.tags as string[])[0] === 'Service';
      // Headers are checked for every request.
      expect(statuses).toContain('400');
      if (!isService) expect(statuses).toEqual(expect.arrayContaining(['429', '500', '503']));
      expect(statuses).toContain('431');
      if (operation.isUpgrade) expect(statuses).toEqual(expect.arrayContaining(['101', '426']));
      if (!isPublic) expect(statuses).toContain('401');
      // A key may lack the scope, and is refused by operations for sessions only.
      if (!isPublic && scope !== 'any') expect(statuses).toContain('403');
      if (bodyTypes.length > 0) expect(statuses).toEqual(expect.arrayContaining(['408', '413', '415']));
      const isFile = answerTypes.includes('application/octet-stream');
      if (answerTypes.length > 0 && !isFile) expect(statuses).toContain('406');
      if (operation.path.includes('{')) expect(statuses).toContain('404');
    });

    test('The operation names the scope that an API key needs', () => {
      if (takesApiKey) expect(['any', ...Object.keys(scopes)]).toContain(scope);
      else expect(scope).toBeUndefined();
    });

    test('The operation is in the table of roles, and the table’s test can make what its path names', () => {
      expect(() => accessOf(accessTable, operation.id)).not.toThrow();
      for (const name of parametersOf(operation))
        expect(() => builderOf(name, operation.area, operation.id)).not.toThrow();
    });

    test('The operation has examples that fit their schemas', () => {
      const holders = [raw.requestBody as Json | undefined, ...Object.values(responses)];
      for (const [type, media] of holders.flatMap(mediaOf)) {
        expect([type, examplesOf(media).length]).not.toEqual([type, 0]);
        if (!/json$/.test(type) || media.schema === undefined) continue;
        for (const example of examplesOf(media)) expect(errorsOf(media.schema, example)).toEqual([]);
      }
    });
  },
);

test('every string has a maxLength and every array a maxItems', () => {
  const loose: string[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type, maxLength, maxItems, enum: values, const: constant, format } = value as Json;
    const types = Array.isArray(type) ? type : [type];
    const isBounded = maxLength !== undefined || values !== undefined || constant !== undefined || format === 'binary';
    if (types.includes('string') && !isBounded) loose.push(path);
    if (types.includes('array') && maxItems === undefined) loose.push(path);
    for (const [key, child] of Object.entries(value)) {
      if (!['example', 'examples', 'default', 'enum'].includes(key)) visit(child, `${path}/${key}`);
    }
  };
  visit(document.paths, '/paths');
  visit(document.components, '/components');
  expect(loose).toEqual([]);
});

test('Requests that change identity take no further fields', () => {
  const requests = Object.entries(document.components.schemas).filter(([name]) =>
    /^(Create|Update|Add|Change|Exchange).*Request$/.test(name),
  );
  expect(requests.length).toBeGreaterThan(4);
  for (const [name, schema] of requests) expect([name, schema.additionalProperties]).toEqual([name, false]);
});
