import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { loadContract } from '../../../api/frame/contract.ts';
import { patternWords } from '../../../api/frame/patternWords.ts';
import { plainWords } from '../../../api/frame/plainWords.ts';

const ajv = new Ajv2020.default({ strict: false });
addFormats.default(ajv);

/** The message to a client for a value that does not fit the schema. */
function told(schema: object, value: unknown): string {
  const validate = ajv.compile(schema);
  expect(validate(value)).toBe(false);
  const [{ message = '' } = {}] = validate.errors ?? [];
  return plainWords(message);
}

test.each<[object, unknown, string]>([
  [{ required: ['a'] }, {}, 'is required'],
  [{ properties: {}, additionalProperties: false }, { a: 1 }, 'is not accepted here'],
  [{ minLength: 1 }, '', 'must not be empty'],
  [{ minItems: 1 }, [], 'must not be empty'],
  [{ minProperties: 1 }, {}, 'must not be empty'],
  [{ minLength: 2 }, 'a', 'must have at least 2 characters'],
  [{ maxLength: 1 }, 'ab', 'must have at most 1 character'],
  [{ maxItems: 2 }, [1, 2, 3], 'must have at most 2 items'],
  [{ maxProperties: 1 }, { a: 1, b: 1 }, 'must have at most 1 property'],
  [{ minProperties: 2 }, { a: 1 }, 'must have at least 2 properties'],
  [{ maxItems: 0 }, [1], 'must be empty'],
  [{ uniqueItems: true }, [1, 1], 'must not have the same item twice'],
  [{ type: 'string' }, 1, 'must be a string'],
  [{ type: ['string', 'null'] }, 1, 'must be a string or null'],
  [{ type: 'integer' }, 1.5, 'must be an integer'],
  [{ type: 'boolean' }, 1, 'must be true or false'],
  [{ type: 'array' }, 1, 'must be an array'],
  [{ type: 'object' }, 1, 'must be an object'],
  [{ minimum: 1 }, 0, 'must be at least 1'],
  [{ maximum: 200 }, 201, 'must be at most 200'],
  [{ exclusiveMinimum: 0 }, 0, 'must be more than 0'],
  [{ exclusiveMaximum: 1 }, 1, 'must be less than 1'],
  [{ multipleOf: 5 }, 1, 'must be a multiple of 5'],
  [{ pattern: '^a"b$' }, 'c', 'does not match the required pattern'],
  [{ pattern: '^[A-Za-z0-9_-]+$' }, 'a b', 'must be letters, digits, "_" and "-"'],
  [{ format: 'date-time' }, 'c', 'must be a valid date-time'],
  [{ enum: ['a', 'b'] }, 'c', 'is not one of the allowed values'],
  [{ const: 1 }, 2, 'does not have the required value'],
  [{ anyOf: [{ const: 1 }, { const: 2 }] }, 3, 'does not have the required value'],
  [{ not: {} }, 3, 'has a form that is not allowed'],
])('The schema %j says of the value %j: %s', (schema, value, words) => {
  expect(told(schema, value)).toBe(words);
});

test('Messages of the request validator name the allowed values', () => {
  expect(plainWords('must be equal to one of the allowed values: a, b')).toBe('must be one of: a, b');
  expect(plainWords('must be equal to one of the allowed values: true')).toBe('must be true');
  expect(plainWords('must match exactly one schema in oneOf')).toBe('matches none of the allowed forms');
});

test('Each pattern of the contract has a description, whose example matches', () => {
  const patterns = new Set<string>();
  const collect = (value: unknown, seen: Set<unknown>): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    for (const [key, child] of Object.entries(value)) {
      if (key === 'pattern' && typeof child === 'string') patterns.add(child);
      else collect(child, seen);
    }
  };
  collect(loadContract().document, new Set());
  expect([...patterns].filter((pattern) => !patternWords.has(pattern))).toEqual([]);
  expect([...patternWords.keys()].filter((pattern) => !patterns.has(pattern))).toEqual([]);
  // Each example in a description matches its pattern.
  for (const [pattern, words] of patternWords) {
    const [, example] = /such as (\S.*)$/.exec(words) ?? [];
    if (example !== undefined) expect([example, new RegExp(pattern, 'u').test(example)]).toEqual([example, true]);
  }
});

test('An unknown message is told as it is', () => {
  expect(plainWords('must be in the future')).toBe('must be in the future');
});
