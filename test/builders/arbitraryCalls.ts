import fc from 'fast-check';
import { loadContract, type Operation } from '../../api/frame/contract.ts';
import { bodyFor, bodySchemaOf, describedParametersOf, parametersOf, pathWith } from './operationCall.ts';
import type { World } from './world.ts';

/** A request that may be valid, odd in places, or completely wrong. */
export interface ArbitraryCall {
  path: string;
  headers: Record<string, string>;
  /** Sent as JSON. Undefined if the operation takes no body. */
  body: unknown;
}

interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  items?: Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  minimum?: number;
  maximum?: number;
}

const { document } = loadContract();
/** Deep enough for every body of the contract. Recursive schemas end there. */
const maxDepth = 5;

const oddStrings = fc.constantFrom(
  '',
  ' ',
  '..',
  '/',
  '../../etc/passwd',
  '%00',
  "' OR 1=1 --",
  '{{7*7}}',
  '<%= 7*7 %>',
  '<script>',
  'a\r\nset-cookie: a=b',
  '\u202e',
  '😀',
  '*',
  'null',
  '-1',
  '1e9',
  '__proto__',
  'x'.repeat(5_000),
  'http://169.254.169.254/',
  'thread:',
  '2026-02-30T00:00:00Z',
);
const odd: fc.Arbitrary<unknown> = fc.oneof(oddStrings, fc.jsonValue({ maxDepth: 2 }), fc.integer(), fc.double());

/**
 * Calls of an operation. `ids` are objects for its path and query. `foreign` are ids of another tenant, which may
 * replace any string.
 */
export function callsOf(
  operation: Operation,
  world: World,
  ids: Record<string, string>,
  foreign: readonly string[],
): fc.Arbitrary<ArbitraryCall> {
  const text = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...Object.values(ids), world.spaceId, 'a') },
    { weight: 1, arbitrary: fc.constantFrom(...foreign) },
    { weight: 1, arbitrary: oddStrings },
  );
  // `fetch` would resolve these two to the path of another operation.
  const segment = text.filter((value) => value !== '.' && value !== '..');
  const pathIds = fc.record(
    Object.fromEntries(
      parametersOf(operation).map((name) => [
        name,
        fc.oneof({ weight: 4, arbitrary: fc.constant(ids[name] ?? 'absent') }, { weight: 1, arbitrary: segment }),
      ]),
    ),
  );
  const placed = (place: string) =>
    fc.record(
      Object.fromEntries(
        describedParametersOf(operation)
          .filter((parameter) => parameter.in === place)
          .map(({ name, schema }) => [name, anyOf((schema ?? {}) as Schema, text)]),
      ),
      { requiredKeys: [] },
    );
  return fc
    .record({ pathIds, query: placed('query'), headers: placed('header'), body: bodyOf(operation, world, text) })
    .map(({ pathIds: chosen, query, headers, body }) => ({
      path: withQuery(pathWith(operation, { ...ids, ...chosen }), query),
      headers: headersOf(headers),
      body,
    }));
}

/**
 * Mostly the contract's example with some changed fields, since a body that is wrong everywhere is refused before the
 * handler.
 */
function bodyOf(operation: Operation, world: World, text: fc.Arbitrary<string>): fc.Arbitrary<unknown> {
  const schema = bodySchemaOf(operation) as Schema | undefined;
  if (schema === undefined) return fc.constant(undefined);
  const example = bodyFor(operation, world);
  const { properties = {} } = resolve(schema);
  const fields = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, anyOf(one, text)])),
    { requiredKeys: [] },
  );
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(example) },
    { weight: 6, arbitrary: fields.map((changes) => ({ ...example, ...changes })) },
    { weight: 2, arbitrary: fields },
    { weight: 1, arbitrary: odd },
  );
}

/** Mostly values that fit the schema, including its limits; sometimes anything else. */
function anyOf(given: Schema, text: fc.Arbitrary<string>, depth = 0): fc.Arbitrary<unknown> {
  const schema = resolve(given);
  if (depth > maxDepth) return odd;
  return fc.oneof(
    { weight: 5, arbitrary: fitting(schema, text, depth) },
    { weight: 1, arbitrary: odd },
  ) as fc.Arbitrary<unknown>;
}

function fitting(schema: Schema, text: fc.Arbitrary<string>, depth: number): fc.Arbitrary<unknown> {
  const { properties, items, minimum = -(2 ** 31), maximum = 2 ** 31 } = schema;
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => anyOf(choice, text, depth + 1)));
  const [type] = [schema.type ?? []].flat();
  switch (type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.oneof(
        fc.integer({ min: Math.ceil(minimum), max: Math.floor(maximum) }),
        fc.constantFrom(minimum, maximum),
      );
    case 'number':
      return fc.double({ min: minimum, max: maximum, noNaN: true });
    case 'array':
      return fc.array(anyOf(items ?? {}, text, depth + 1), { maxLength: 3 });
    case 'object':
      return fc.record(
        Object.fromEntries(Object.entries(properties ?? {}).map(([name, one]) => [name, anyOf(one, text, depth + 1)])),
        { requiredKeys: [] },
      );
    default:
      return text;
  }
}

function withQuery(path: string, query: Record<string, unknown>): string {
  const url = new URL(path, 'http://atrium.invalid');
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, textOf(value));
  return url.pathname + url.search;
}

/** Removes characters that HTTP headers cannot carry, since `fetch` refuses those. */
function headersOf(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      textOf(value)
        .replace(/[^\x20-\x7E]/g, '')
        .trim(),
    ]),
  );
}

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.toWellFormed();
}

function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const path = schema.$ref.slice(2).split('/');
  return resolve(path.reduce((place, key) => (place as Record<string, unknown>)[key], document as unknown) as Schema);
}
