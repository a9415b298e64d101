import type { ErrorObject } from 'ajv/dist/2020.js';
import type { Fault } from './readManifest.ts';

/** False for an error about how a name is wrong. Its parent error says that the name is wrong, which is enough. */
export function isWhole({ propertyName }: ErrorObject): boolean {
  return propertyName === undefined;
}

/** A validator's error, in words for the author of a manifest. */
export function described({ instancePath: pointer, keyword, message = 'is wrong', params }: ErrorObject): Fault {
  const name = pointer.split('/').findLast((part) => part !== '' && !/^\d+$/.test(part));
  const where = name === undefined ? '' : `${name} `;
  const of = <T>(key: string) => (params as Record<string, T>)[key];
  if (keyword === 'pattern' && name === 'environment') {
    return { pointer, detail: 'environment is not a name of one: lowercase letters, digits, ".", "_" and "-"' };
  }
  switch (keyword) {
    case 'additionalProperties': {
      const unknown = String(of('additionalProperty'));
      return {
        pointer: `${pointer}/${escaped(unknown)}`,
        detail: `there is no field \`${unknown}\` here`,
        atKey: true,
      };
    }
    case 'propertyNames': {
      const wrong = String(of('propertyName'));
      return { pointer: `${pointer}/${escaped(wrong)}`, detail: `${wrong} is not a name of a variable`, atKey: true };
    }
    case 'required':
      return { pointer, detail: `\`${String(of('missingProperty'))}\` is missing`, isMissing: true };
    case 'enum':
      return { pointer, detail: `${where}must be one of ${of<unknown[]>('allowedValues')?.join(', ')}` };
    case 'type':
      return {
        pointer,
        detail: `${where}must be ${[of<string | string[]>('type')].flat().map(kindName).join(' or ')}`,
      };
    default:
      return { pointer, detail: `${where}${wordsOf(keyword, of<number>('limit')) ?? message}` };
  }
}

const kindNames: Readonly<Record<string, string>> = {
  object: 'a map of names and values',
  array: 'a list',
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
};

function kindName(type: string | undefined): string {
  return kindNames[type ?? ''] ?? String(type);
}

function wordsOf(keyword: string, limit = 0): string | undefined {
  switch (keyword) {
    case 'minLength':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${limit} characters`;
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'minItems':
      return limit === 1 ? 'must not be empty' : `must have at least ${limit} entries`;
    case 'maxItems':
    case 'maxProperties':
      return `must have at most ${limit} entries`;
    case 'uniqueItems':
      return 'must not have the same entry twice';
    case 'pattern':
      // For names of components and secrets.
      return 'is not a name that it may have: letters, digits, and "-" (of a component) or "_" (of a secret) between them';
    default:
      return undefined;
  }
}

function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
