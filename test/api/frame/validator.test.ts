import type { Request } from 'express';
import { type Contract, loadContract, type Operation } from '../../../api/frame/contract.ts';
import { createValidator } from '../../../api/frame/middleware/validator.ts';

const options = { validateResponses: false, securityHandlers: { bearerAuth: async () => true } };

/** A contract of GET operations, by their paths and areas. */
function contractOf(areas: Record<string, string>): Contract {
  const responses = { 200: { description: 'x' } };
  const parametersOf = (path: string) =>
    [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      ...{ in: 'path', name, required: true },
      schema: { type: 'string' },
    }));
  const paths = Object.fromEntries(
    Object.keys(areas).map((path) => [path, { get: { responses, parameters: parametersOf(path) } }]),
  );
  const operations = Object.entries(areas).map(([path, area]) => ({ id: path, area, path, method: 'GET' }));
  const document = { openapi: '3.1.0', info: { title: 'x', version: '1' }, paths, components: {} };
  return { text: '', document, operations: operations.map(withDefaults) } as unknown as Contract;
}

const withDefaults = (operation: Partial<Operation>) => ({ isPublic: true, bodyTypes: [], ...operation });

test('all of the contract can be loaded', async () => {
  await expect(createValidator(loadContract(), options).warmUp()).resolves.toBeUndefined();
});

test('paths that cannot be told apart are an error of their area alone, which is loaded when it is asked for', async () => {
  const contract = contractOf({ '/good/{id}': 'good', '/bad/{one}': 'bad', '/bad/{other}': 'bad' });
  const [good, bad] = contract.operations;
  if (good === undefined || bad === undefined) throw new Error('unreachable');
  const validator = createValidator(contract, options);
  const req = {} as Request & { openapi?: object };
  await validator.prepare(req, good, { id: 'x' });
  expect(req.openapi).toMatchObject({ openApiRoute: '/good/{id}', pathParams: { id: 'x' } });
  await expect(validator.prepare(req, bad, { one: 'x' })).rejects.toThrow('ambiguous');
  await expect(validator.warmUp()).rejects.toThrow('ambiguous');
});

test('a warming up that is given up ends', async () => {
  const contract = contractOf({ '/good': 'good', '/bad/{one}': 'bad', '/bad/{other}': 'bad' });
  await expect(createValidator(contract, options).warmUp(AbortSignal.abort())).resolves.toBeUndefined();
});
