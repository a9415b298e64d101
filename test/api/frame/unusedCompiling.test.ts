import { middleware } from 'express-openapi-validator';
import framework from 'express-openapi-validator/dist/framework/index.js';
import preprocessor from 'express-openapi-validator/dist/middlewares/parsers/schema.preprocessor.js';
import { loadContract } from '../../../api/frame/contract.ts';
import { splitContract } from '../../../api/frame/contractParts.ts';
import {
  leaveOutCompilingReferences,
  leaveOutOtherFiles,
  leaveOutUnusedSpecCheck,
} from '../../../api/frame/middleware/unusedCompiling.ts';

const responses = { 200: { description: 'x' } };
const document = { openapi: '3.1.0', info: { title: 'x', version: '1' }, paths: { '/a': { get: { responses } } } };

/** Why the validator does not load a document; undefined when it does. */
async function refusalOf(apiSpec: object, validateApiSpec: boolean): Promise<unknown> {
  const [load] = middleware({ apiSpec: structuredClone(apiSpec) as never, validateApiSpec });
  return new Promise((resolve) => load?.({ app: { param: () => undefined } } as never, {} as never, resolve));
}

test('A document is checked against the schema of OpenAPI only where that is asked for', async () => {
  leaveOutUnusedSpecCheck();
  const error = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const wrong = { ...document, info: {} };
  expect(await refusalOf(document, true)).toBeUndefined();
  expect(await refusalOf(wrong, true)).toMatchObject({ message: expect.stringContaining('invalid') });
  expect(await refusalOf(wrong, false)).toBeUndefined();
  error.mockRestore();
});

describe('references', () => {
  /** The document as the validator has it before it compiles operations. */
  const preprocessed = (apiSpec: object) => {
    const options = { strict: false, formats: {}, serDesMap: {}, logger: false };
    const made = new preprocessor.SchemaPreprocessor(structuredClone(apiSpec) as never, options as never, {} as never);
    return made.preProcess();
  };

  test('All references of the contract lead where the library has them lead', () => {
    const parts = splitContract(loadContract());
    const before = parts.map((part) => preprocessed(part.copy()));
    leaveOutCompilingReferences();
    expect(parts.map((part) => preprocessed(part.copy()))).toEqual(before);
  });

  test('A reference may lead to another one, and must lead to a schema', () => {
    leaveOutCompilingReferences();
    const schema = { $ref: '#/components/schemas/A~1b' };
    const withSchemas = (schemas: object) => ({
      ...document,
      paths: {
        '/a': { get: { responses: { 200: { description: 'x', content: { 'application/json': { schema } } } } } },
      },
      components: { schemas },
    });
    const { apiDoc } = preprocessed(withSchemas({ 'A/b': { $ref: '#/components/schemas/C' }, C: { type: 'string' } }));
    const media = (apiDoc as ReturnType<typeof withSchemas>).paths['/a'].get.responses[200].content['application/json'];
    expect(media.schema).toEqual({ type: 'string' });
    expect(() => preprocessed(withSchemas({}))).toThrow('#/components/schemas/A~1b');
  });
});

test('No part of the contract refers to another file', async () => {
  const parts = splitContract(loadContract());
  const { prototype } = framework.OpenAPIFramework as unknown as {
    prototype: { loadSpec(document: object): Promise<object> };
  };
  const load = (document: object) => prototype.loadSpec(document);
  const before = await Promise.all(parts.map((part) => load(part.copy())));
  leaveOutOtherFiles();
  expect(await Promise.all(parts.map((part) => load(part.copy())))).toEqual(before);
});
