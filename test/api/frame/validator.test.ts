import express, { type NextFunction, type Request, type Response } from 'express';
import request from 'supertest';
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

test('The whole contract can be loaded and compiled', async () => {
  const contract = loadContract();
  const validator = createValidator(contract, options);
  for (const operation of contract.operations) {
    const { method, path, bodyTypes } = operation;
    const headers = bodyTypes[0] === undefined ? {} : { 'content-type': bodyTypes[0] };
    const given = { method, path, url: path, originalUrl: path, baseUrl: '', headers, query: {}, body: {}, operation };
    const req = given as unknown as Request;
    await validator.prepare(req, operation, {});
    const refusal = await new Promise((resolve) => validator.request(req, {} as Response, resolve));
    // An empty request may be refused, but only by its schema.
    if (refusal !== undefined) expect(refusal).toMatchObject({ status: 400, path });
  }
});

test('Paths that cannot be told apart are an error of their own area alone, once it is used', async () => {
  const contract = contractOf({ '/good/{id}': 'good', '/bad/{one}': 'bad', '/bad/{other}': 'bad' });
  const [good, bad] = contract.operations;
  if (good === undefined || bad === undefined) throw new Error('unreachable');
  const validator = createValidator(contract, options);
  const req = {} as Request & { openapi?: object };
  await validator.prepare(req, good, { id: 'x' });
  expect(req.openapi).toMatchObject({ openApiRoute: '/good/{id}', pathParams: { id: 'x' } });
  await expect(validator.prepare(req, bad, { one: 'x' })).rejects.toThrow('ambiguous');
});

test('Each status of an answer is checked against its own schema, in any order', async () => {
  const named = (name: string) => ({
    description: name,
    content: {
      'application/json': {
        schema: { type: 'object', required: [name], properties: { [name]: { $ref: '#/components/schemas/Name' } } },
      },
    },
  });
  const contract = contractOf({ '/thing': 'things' });
  Object.assign(contract.document, {
    paths: { '/thing': { get: { responses: { 200: named('thing'), 404: named('problem') } } } },
    components: { schemas: { Name: { type: 'string', minLength: 2 } } },
  });
  const [operation] = contract.operations;
  if (operation === undefined) throw new Error('unreachable');
  const validator = createValidator(contract, { ...options, validateResponses: true });
  const answers: [status: number, body: object][] = [
    [200, { thing: 'good' }],
    [404, { problem: 'good' }],
    [404, { thing: 'of the other status' }],
    [200, { thing: 'x' }],
    [200, { problem: 'of the other status' }],
    [418, { thing: 'nobody described' }],
    [404, { problem: 'good again' }],
  ];
  const app = express();
  app.use(async (req, _res, next) => {
    await validator.prepare(Object.assign(req, { operation }), operation, {});
    next();
  }, validator.response);
  app.get('/thing', (_req, res) => {
    const [status, body] = answers.shift() ?? [500, {}];
    res.status(status).json(body);
  });
  app.use(({ message }: Error, _req: Request, res: Response, _next: NextFunction) => {
    res.status(500).json({ message });
  });
  const got = [];
  while (answers.length > 0) {
    const { status, body } = await request(app).get('/thing');
    got.push(status === 500 ? (body as { message: string }).message : status);
  }
  expect(got).toEqual([
    ...[200, 404],
    "/response must have required property 'problem'",
    '/response/thing must NOT have fewer than 2 characters',
    "/response must have required property 'thing'",
    "no schema defined for status code '418' in the openapi spec",
    404,
  ]);
});
