import framework from 'express-openapi-validator/dist/framework/index.js';
import schemaValidator from 'express-openapi-validator/dist/framework/openapi.schema.validator.js';
import preprocessor from 'express-openapi-validator/dist/middlewares/parsers/schema.preprocessor.js';

const Original = schemaValidator.OpenAPISchemaValidator;
type Options = ConstructorParameters<typeof Original>[0];
type Check = InstanceType<typeof Original>['validate'];

/** Compiles OpenAPI's own schema only when a document is checked against it. */
class OnlyWhenUsed {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  validate: Check = (document) => new Original(this.#options).validate(document);
}

/**
 * express-openapi-validator compiles OpenAPI's own schema for each document that it loads, even when `validateApiSpec:
 * false` turns the check off. With many documents this was half of the API's start: two seconds of CPU.
 */
export function leaveOutUnusedSpecCheck(): void {
  schemaValidator.OpenAPISchemaValidator = OnlyWhenUsed as unknown as typeof Original;
}

interface Preprocessor {
  apiDoc: object;
  resolveSchema(value: Reference | null | undefined): unknown;
}

interface Reference {
  $ref?: string;
}

/**
 * To follow a reference, express-openapi-validator compiles the schema that it leads to, but uses only the schema
 * itself. So an area's first request waited for the schemas of all the area's answers. This only looks the reference
 * up.
 */
export function leaveOutCompilingReferences(): void {
  const prototype = preprocessor.SchemaPreprocessor.prototype as unknown as Preprocessor;
  if (typeof prototype.resolveSchema !== 'function') {
    throw new Error('express-openapi-validator follows its references in another way now.');
  }
  prototype.resolveSchema = function (value) {
    if (value === null || value === undefined) return null;
    let found = value;
    // Keywords beside the first `$ref` are ignored. Its target is followed further only if it has nothing but a `$ref`.
    while (found.$ref !== undefined && (found === value || Object.keys(found).length === 1)) {
      found = lookUp(this.apiDoc, found.$ref);
    }
    return found;
  };
}

function lookUp(document: object, ref: string): Reference {
  let place: unknown = document;
  for (const key of ref.replace(/^#\//, '').split('/')) {
    place = (place as Record<string, unknown> | undefined)?.[key.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  if (typeof place !== 'object' || place === null) throw new Error(`The contract has nothing at ${ref}.`);
  return place;
}

interface Framework {
  loadSpec(document: object): Promise<object>;
}

/**
 * express-openapi-validator searches each document that it loads for references to other files. This took a quarter of
 * an operation's first request. All references in the contract stay within its own document.
 */
export function leaveOutOtherFiles(): void {
  const prototype = framework.OpenAPIFramework.prototype as unknown as Framework;
  if (typeof prototype.loadSpec !== 'function') {
    throw new Error('express-openapi-validator loads its documents in another way now.');
  }
  prototype.loadSpec = async (document) => document;
}
