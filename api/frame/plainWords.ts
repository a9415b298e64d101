import { patternWords } from './patternWords.ts';

const types: Record<string, string> = {
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  null: 'null',
};

const plural = (count: string, one: string) =>
  `${count} ${count === '1' ? one : one === 'property' ? 'properties' : `${one}s`}`;
const ones: Record<string, string> = { characters: 'character', items: 'item', properties: 'property' };

/** The validator's messages and their plainer words. Messages that match none are passed on unchanged. */
const words: [RegExp, string | ((...found: string[]) => string)][] = [
  [/^must have required property /, 'is required'],
  [/^must NOT have (?:additional|unevaluated) properties$/, 'is not accepted here'],
  [/^Unknown query parameter /, 'is not a parameter of this operation'],
  [/^Empty value found for query parameter /, 'is empty'],
  [/^Parameter .* must be url encoded/, 'contains characters that must be percent-encoded'],
  [/^must NOT have fewer than 1 (?:characters|items|properties)$/, 'must not be empty'],
  [
    /^must NOT have fewer than (\d+) (\w+)$/,
    (count, what) => `must have at least ${plural(count, ones[what] ?? what)}`,
  ],
  [/^must NOT have more than 0 (?:characters|items|properties)$/, 'must be empty'],
  [/^must NOT have more than (\d+) (\w+)$/, (count, what) => `must have at most ${plural(count, ones[what] ?? what)}`],
  [/^must NOT have duplicate items /, 'must not have the same item twice'],
  [
    /^must be ([a-z]+(?:,[a-z]+)*)$/,
    (list) =>
      `must be ${list
        .split(',')
        .map((type) => types[type] ?? type)
        .join(' or ')}`,
  ],
  [/^must be >= (\S+)$/, (bound) => `must be at least ${bound}`],
  [/^must be <= (\S+)$/, (bound) => `must be at most ${bound}`],
  [/^must be > (\S+)$/, (bound) => `must be more than ${bound}`],
  [/^must be < (\S+)$/, (bound) => `must be less than ${bound}`],
  [/^must be multiple of (\S+)$/, (of) => `must be a multiple of ${of}`],
  [/^must match pattern "(.*)"$/s, (pattern) => patternWords.get(pattern) ?? 'does not match the required pattern'],
  [/^must match format "(.*)"$/, (format) => `must be a valid ${format}`],
  [
    /^must be equal to one of the allowed values(?:: (.*))?$/s,
    (all) => {
      if (!all) return 'is not one of the allowed values';
      return all.includes(',') ? `must be one of: ${all}` : `must be ${all}`;
    },
  ],
  [/^must be equal to constant$/, 'does not have the required value'],
  [/^must match (?:exactly one schema in oneOf|a schema in anyOf)$/, 'matches none of the allowed forms'],
  [/^must NOT be valid$/, 'has a form that is not allowed'],
];

/** A request's fault in plain English. It follows the name of the faulty field. */
export function plainWords(message: string): string {
  for (const [pattern, plain] of words) {
    const found = pattern.exec(message);
    if (found !== null) return typeof plain === 'string' ? plain : plain(...found.slice(1));
  }
  return message;
}
